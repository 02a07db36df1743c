# Completion of kiln and train for fish: kiln completion fish | source

function __kiln_complete
    # Never run a program that merely has the name: the kiln beside it, or the one in PATH.
    set -l kiln kiln
    set -l folder (string replace -r '^~/' "$HOME/" -- (string replace -r '/[^/]*$' '' -- (commandline -op)[1]))
    if test -x "$folder/kiln"; and not test -d "$folder/kiln"
        set kiln $folder/kiln
    end
    command $kiln complete fish (commandline -cp | string collect) 2>/dev/null
end

complete -c kiln -f -a '(__kiln_complete)'
complete -c train -f -a '(__kiln_complete)'
