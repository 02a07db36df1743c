# Completion of kiln and train for bash: eval "$(kiln completion bash)"

_kiln()
{
    # Never run a program that merely has the name: the kiln beside it, or the one in PATH.
    local kiln=kiln folder=${COMP_WORDS[0]%/*}
    folder=${folder/#\~\//$HOME/}
    if [[ ${COMP_WORDS[0]} == */* && -x $folder/kiln ]]; then kiln=$folder/kiln; fi
    # Blanks are part of the answers: only the program knows where a word ends.
    compopt -o nospace 2>/dev/null
    mapfile -t COMPREPLY < <(
        command "$kiln" complete bash "$COMP_WORDBREAKS" "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
}
complete -o bashdefault -F _kiln kiln train
