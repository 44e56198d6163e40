# step(COMMAND …): runs it, shows what it prints, and ends the test where it fails.
function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message("${output}")
  if(result)
    list(JOIN ARGN " " text)
    message(FATAL_ERROR "failed: ${text}")
  endif()
endfunction()
