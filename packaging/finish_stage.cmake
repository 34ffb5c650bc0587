# Runs between CPack's installation and its packing: makes of each component's folder what a Debian package has, and gives all
# files one time, so that the same build makes the same packages.
if(NOT DEFINED ENV{SOURCE_DATE_EPOCH})
  message(FATAL_ERROR "SOURCE_DATE_EPOCH is not set: use scripts/package")
endif()

# run(<command> ...)
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# package_documents(<root> <package>): what /usr/share/doc must have.
function(package_documents root package)
  set(folder ${root}/usr/share/doc/${package})
  file(COPY_FILE ${CMAKE_CURRENT_LIST_DIR}/copyright ${folder}/copyright)
  file(COPY_FILE ${CMAKE_CURRENT_LIST_DIR}/../CHANGELOG.md ${folder}/changelog)
  run(gzip -9n ${folder}/changelog)
endfunction()

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} upper)
  set(root ${CPACK_TEMPORARY_DIRECTORY}/${component})
  set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  file(MAKE_DIRECTORY ${root}/usr/share/doc/${package})
  package_documents(${root} ${package})
  file(GLOB pages ${root}/usr/share/man/man1/*.1)
  if(pages)
    run(gzip -9nf ${pages})
  endif()
  # Names of functions stay: the stacks of a node that hangs have them.
  file(GLOB_RECURSE files ${root}/usr/bin/* ${root}/usr/libexec/* ${root}/usr/lib/*.so.*)
  foreach(file IN LISTS files)
    if(NOT IS_SYMLINK ${file})
      run(strip --strip-debug ${file})
    endif()
  endforeach()
  run(find ${root} -exec touch -h -d @$ENV{SOURCE_DATE_EPOCH} {} +)
endforeach()
