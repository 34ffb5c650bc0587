# Files that become part of a library. Run as a script (below), this writes the source; included, it is muster_embed().
if(CMAKE_SCRIPT_MODE_FILE)
  set(text "// Written by cmake/MusterEmbed.cmake.\n#include \"${HEADER}\"\n\nusing namespace std::string_view_literals;\n\n")
  string(APPEND text "const std::vector<${NAMESPACE}::EmbeddedFile>& ${NAMESPACE}::EmbeddedFiles() {\n")
  string(APPEND text "  static const auto* const kFiles = new std::vector<EmbeddedFile>{\n")
  string(REPLACE "|" ";" FILES "${FILES}")
  foreach(file IN LISTS FILES)
    get_filename_component(name "${file}" NAME)
    file(READ "${file}" bytes)
    if(bytes MATCHES "\\)muster_embed\"")
      message(FATAL_ERROR "${file} has the delimiter of the literal that it is to become")
    endif()
    string(APPEND text "      {\"${name}\"sv, R\"muster_embed(${bytes})muster_embed\"sv},\n")
  endforeach()
  file(WRITE "${OUTPUT}" "${text}  };\n  return *kFiles;\n}\n")
  return()
endif()

# muster_embed(<target> HEADER <header> NAMESPACE <namespace> FILES ...): adds a source that has the files' bytes and is
# written again when one of them changes; the same bytes give the same source, so ccache knows it. `header` declares, in the
# namespace, EmbeddedFile{name, bytes} and EmbeddedFiles(). Text only: the files become raw string literals.
function(muster_embed target)
  cmake_parse_arguments(ARG "" "HEADER;NAMESPACE" "FILES" ${ARGN})
  list(TRANSFORM ARG_FILES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ REGEX "^[^/]")
  string(JOIN "|" joined ${ARG_FILES})
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${target}_files.cc)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} "-DOUTPUT=${output}" "-DHEADER=${ARG_HEADER}" "-DNAMESPACE=${ARG_NAMESPACE}"
            "-DFILES=${joined}" -P ${PROJECT_SOURCE_DIR}/cmake/MusterEmbed.cmake
    DEPENDS ${ARG_FILES} ${PROJECT_SOURCE_DIR}/cmake/MusterEmbed.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
