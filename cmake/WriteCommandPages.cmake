# Writes the man page and the shell completions of `program` below the folder `share`.
function(write file)
  execute_process(COMMAND ${program} ${ARGN} OUTPUT_VARIABLE text RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${program} ${ARGN}: ${result}")
  endif()
  file(WRITE ${share}/${file} "${text}")
endfunction()

write(man/man1/run_experiment.1 --man)
write(bash-completion/completions/run_experiment --completion bash)
write(zsh/site-functions/_run_experiment --completion zsh)
write(fish/vendor_completions.d/run_experiment.fish --completion fish)
