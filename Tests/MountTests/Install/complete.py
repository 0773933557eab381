"""complete.py SHELL SETUP LINE...: completes each line in the shell by typing TAB after it.

The shell, bash or zsh, sources the file SETUP and runs in a pseudoterminal in the working directory. Prints a JSON
list of pairs: the completed line, and the displayed candidates.
"""
import json, os, pty, re, select, sys, time

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|[\x07\r]")
START = {
  "bash": """
PS1='ready> '
bind 'set show-all-if-ambiguous on'; bind 'set completion-query-items 0'; bind 'set page-completions off'
bind 'set bell-style none'; bind 'set enable-bracketed-paste off'
bind -x '"\\C-xl": printf "\\n<<%s>>\\n" "$READLINE_LINE"'
""",
  "zsh": """
PS1='ready> '; unsetopt beep promptsp; LISTMAX=0; zstyle ':completion:*' list-prompt ''
unset zle_bracketed_paste; setopt nolistbeep noautomenu nolisttypes
shown() { zle -I; print -r -- "<<$BUFFER>>"; }
zle -N shown; bindkey '^Xl' shown
""",
}
COMMAND = {"bash": ["bash", "--noprofile", "--norc", "-i"], "zsh": ["zsh", "-f", "-i"]}


class Shell:
  def __init__(self, name, setup):
    self.process, self.terminal = pty.fork()
    if self.process == 0:
      os.environ.update(TERM="dumb", COLUMNS="200", LINES="200", LC_ALL="C.UTF-8")
      os.execvp(COMMAND[name][0], COMMAND[name])
    self.text = ""
    self.send("stty -echo cols 200 rows 200; . '%s'; echo is''set\n" % setup)
    self.wait("isset")
    for line in START[name].strip().split("\n"):
      self.send(line + "\n")
    self.send("stty echo; echo is''ready\n")
    self.wait("isready")

  def send(self, text):
    os.write(self.terminal, text.encode())

  def wait(self, pattern, seconds=20):
    end = time.time() + seconds
    while not re.search(pattern, self.text, re.S):
      if not select.select([self.terminal], [], [], max(0, end - time.time()))[0]:
        sys.exit("no %r in %r" % (pattern, self.text))
      self.text += ESCAPES.sub("", os.read(self.terminal, 65536).decode("utf-8", "replace"))

  def complete(self, line):
    self.text = ""
    # The key after TAB prints the completed line.
    self.send(line + "\t\x18l")
    self.wait("<<.*>>")
    shown, result = re.search("(.*?)<<(.*?)>>", self.text, re.S).groups()
    self.send("\x01\x0b")
    return result, shown


shell = Shell(sys.argv[1], sys.argv[2])
print(json.dumps([shell.complete(line) for line in sys.argv[3:]]))
shell.send("exit\n")
