"""Runs shells on a pseudo-terminal, key by key: what a user sees after Tab."""
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import termios
import time

from kilntest import BUILD, ROOT

SHOW = "\x07"  # Ctrl-G, which the setups below bind to printing the line
SCRIPTS = os.path.join(ROOT, "tools/completion")

# The line is printed between marks that the setup itself does not spell out.
SETUPS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], r"""
PS1='$ '; PS2=; M=MAR
bind 'set show-all-if-ambiguous on'; bind 'set completion-query-items 0'
bind 'set page-completions off'; bind 'set enable-bracketed-paste off'; bind 'set bell-style none'
show() { printf '\n%sK[%s]%sK\n' $M "$READLINE_LINE" $M; READLINE_LINE=; }
bind -x '"\C-g": show'
"""),
    "zsh": (["zsh", "-f", "-i"], r"""
PS1='$ '; PS2=; M=MAR; unsetopt prompt_cr prompt_sp list_ambiguous auto_menu beep; LISTMAX=100000
autoload -Uz compinit; compinit -u -D
show() { printf '\n%sK[%s]%sK\n' $M "$BUFFER" $M; BUFFER=; zle reset-prompt }
zle -N show; bindkey -e; bindkey '^G' show
"""),
    "fish": (["fish", "--no-config", "-i"], r"""
set -g M MAR; set -g fish_autosuggestion_enabled 0; function fish_prompt; printf '$ '; end
function show; printf '\n%sK[%s]%sK\n' $M (commandline | string collect) $M; commandline ''; commandline -f repaint; end
bind \cg show
"""),
}


def missing(shell):
    return shutil.which(shell) is None


class Shell:
    """A shell in `folder` with kiln in its PATH, which completes by `load`, a command."""

    def __init__(self, shell, folder, load=None, path=BUILD):
        argv, setup = SETUPS[shell]
        env = {"HOME": folder, "PATH": path + ":/usr/bin:/bin", "TERM": "xterm", "LANG": "C.UTF-8",
               "XDG_CONFIG_HOME": folder + "/.config", "XDG_DATA_HOME": folder + "/.local"}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
            if name in os.environ:
                env[name] = os.environ[name]
        if load is None:
            load = "kiln completion fish | source" if shell == "fish" else f'eval "$(kiln completion {shell})"'
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(argv[0], argv, env)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 200, 250, 0, 0))
        self.text = ""
        with open(os.path.join(folder, ".setup"), "w") as f:
            f.write(setup + load + "\n")
        self.wait(r"[$#%>] ?$")  # its prompt: keys that come before may be lost
        self.send(f". ./.setup; echo LOAD''ED\n" if shell != "fish" else "source ./.setup; echo LOAD''ED\n")
        self.wait(r"LOADED")

    def send(self, keys):
        os.write(self.fd, keys.encode())

    def wait(self, pattern, seconds=30):
        """Read until the pattern comes; what was read, without control sequences."""
        end = time.monotonic() + seconds
        while True:
            clean = re.sub(r"\x1b(\[[0-9;?>=]*[a-zA-Z]|[=>]|\][^\x07]*\x07|\([A-Z0-9])|\r|\x0f", "", self.text)
            found = re.search(pattern, clean, re.S)
            if found:
                self.text = ""
                return found, clean
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"{pattern} did not come; the screen:\n{clean}")
            try:
                self.text += os.read(self.fd, 65536).decode(errors="replace")
            except OSError:
                raise AssertionError(f"the shell ended; the screen:\n{clean}") from None

    def press(self, keys):
        """The line after these keys, and all that was on the screen meanwhile."""
        self.send(keys + SHOW)
        found, screen = self.wait(r"MARK\[(.*)\]MARK")
        return found.group(1), screen[:found.start()]

    def tab(self, typed):
        """The line after Tab."""
        return self.press(typed + "\t")[0]

    def listed(self, typed):
        """The words on the screen after Tab."""
        return set(self.press(typed + "\t")[1].split())

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)
