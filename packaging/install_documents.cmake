# Part of the installation: man pages and shell completion, as the program that was built writes them.
# program: it; share: where "man/man1" and the shells' folders are.

# write_answer(<file> <argument> ...): what the program answers becomes the file.
function(write_answer file)
  execute_process(COMMAND ${program} ${ARGN} OUTPUT_VARIABLE answer COMMAND_ERROR_IS_FATAL ANY)
  file(WRITE ${share}/${file} "${answer}")
endfunction()

execute_process(COMMAND ${program} help --man-dir ${share}/man/man1 COMMAND_ERROR_IS_FATAL ANY)
write_answer(bash-completion/completions/muster completion bash)
write_answer(zsh/vendor-completions/_muster completion zsh)
write_answer(fish/vendor_completions.d/muster.fish completion fish)
