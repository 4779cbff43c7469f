#include "experiments/command/complete.h"

namespace lloyd {
namespace {

constexpr std::string_view kBash =
    R"sh(# bash completion of run_experiment, printed by: run_experiment --completion bash
# To have it at once:  source <(run_experiment --completion bash)
_run_experiment() {
  local current=${COMP_WORDS[COMP_CWORD]} line candidates=()
  COMPREPLY=()
  # `complete` names the command as it was typed.
  while IFS= read -r line; do
    case $line in
      :files) compopt -o filenames && mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(
        compgen -f -- "$current"
      ) ;;
      :folders) compopt -o filenames && mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(
        compgen -d -- "$current"
      ) ;;
      :specs) compopt -o filenames && mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(
        compgen -d -- "$current"
        compgen -f -X '!*.yaml' -- "$current"
      ) ;;
      *) candidates+=("${line%%$'\t'*}") ;;
    esac
  done < <("${1/#\~/$HOME}" --complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  [ "$current" != = ] || current=
  mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "${candidates[*]}" -- "$current")
  [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace
}
complete -F _run_experiment run_experiment
)sh";

constexpr std::string_view kZsh = R"sh(#compdef run_experiment
# zsh completion of run_experiment, printed by: run_experiment --completion zsh
# To have it at once, after compinit:  source <(run_experiment --completion zsh)
_run_experiment() {
  local line word files=
  local -a plain open
  for line in "${(@f)$("${words[1]/#\~/$HOME}" --complete -- \
      "${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}"; do
    word=${line%%$'\t'*}
    case $line in
      '') ;;
      :*) files=$line ;;
      *=$'\t'*) open+=("${word//:/\\:}:${line#*$'\t'}") ;;
      *$'\t'*) plain+=("${word//:/\\:}:${line#*$'\t'}") ;;
      *) plain+=("${word//:/\\:}") ;;
    esac
  done
  (( ! $#plain )) || _describe -t words word plain
  (( ! $#open )) || _describe -t axes axis open -S ''
  compset -P '--*='
  case $files in
    :files) _files ;;
    :folders) _files -/ ;;
    :specs) _files -g '*.yaml' ;;
  esac
}
if [[ ${funcstack[1]-} == _run_experiment ]]; then
  _run_experiment "$@"
else
  compdef _run_experiment run_experiment
fi
)sh";

constexpr std::string_view kFish =
    R"sh(# fish completion of run_experiment, printed by: run_experiment --completion fish
# To have it at once:  run_experiment --completion fish | source
function __run_experiment_candidates
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    set -l program $before[1]
    set -e before[1]
    set -l prefix (string match -r -- '^--[^=]*=' "$current")
    set -l value (string replace -r -- '^--[^=]*=' '' "$current")
    for line in ($program --complete -- $before "$current" 2>/dev/null)
        switch $line
            case ':files'
                string replace -r -- '^' "$prefix" (__fish_complete_path "$value")
            case ':folders'
                string replace -r -- '^' "$prefix" (__fish_complete_directories "$value" '')
            case ':specs'
                __fish_complete_suffix .yaml
            case '*'
                echo $line
        end
    end
end
complete -c run_experiment -f -a '(__run_experiment_candidates)'
)sh";

}  // namespace

std::string_view completion_script(std::string_view shell) {
  return shell == "bash" ? kBash : shell == "zsh" ? kZsh : kFish;
}

}  // namespace lloyd
