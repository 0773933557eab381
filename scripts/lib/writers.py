#!/usr/bin/env python3
"""writers.py CONTROL-FILE: writes URLs of many lengths to a control file with every tool that is installed.

Prints a table: a line for each tool, a column for each length. A URL arrived whole (+), was refused whole (-), was cut
(CUT), or left no result (?). Exits with 1 if one was cut or left none. The mount needs the route `Any s:Text`.
"""
import json, os, shlex, shutil, subprocess, sys

control = sys.argv[1]
LENGTHS = [100, 510, 511, 512, 513, 1024, 2037, 2038, 2039, 4095, 4096, 4097, 8192, 10000, 16384, 20000, 65000, 65536, 65537, 70000]
SHELLS = ["bash", "dash", "zsh", "mksh", "ksh93", "busybox sh", "fish --no-config"]
SCRIPTS = [f"{shell} {{file}}|{command} {redirect} {{control}}"
           for shell in SHELLS for command in ('echo "$U"', "printf '%s\\n' \"$U\"", "printf %s \"$U\"")
           for redirect in (">", ">>")]
SCRIPTS += [f"tcsh -f {{file}}|echo $U:q {redirect} {{control}}" for redirect in (">", ">>")]
TOOLS = ["cat urls", "sort urls", "mawk 1 urls", "gawk 1 urls", "sed n urls", "grep : urls", "dd if=urls status=none",
         "dd if=urls bs=4k status=none", "perl -pe '' urls", "python3 -c 'print(open(\"urls\").read(), end=\"\")'",
         "node -e 'process.stdout.write(require(\"fs\").readFileSync(\"urls\"))'", "cat urls | tee"]
SCRIPTS += [f"bash {{file}}|{tool} {redirect} {{control}}" for tool in TOOLS for redirect in (">", ">>")]
SCRIPTS += ["bash {file}|cat urls | tee {control} > /dev/null", "bash {file}|cat urls | tee -a {control} > /dev/null",
            "bash {file}|dd if=urls of={control} conv=notrunc status=none", "bash {file}|cp urls {control}",
            "bash {file}|dd if=urls of={control} oflag=append conv=notrunc status=none",
            "bash {file}|python3 -c 'f = open(\"{control}\", \"w\"); f.write(open(\"urls\").read())'",
            "bash {file}|node -e 'require(\"fs\").createReadStream(\"urls\").pipe(require(\"fs\").createWriteStream(\"{control}\", {{flags: \"a\"}}))'"]

def results():
    # Between two read(2), results may come and go, so that a line is half of one and half of another.
    for _ in range(100):
        with open(control) as file:
            try:
                return [json.loads(line) for line in file if line.startswith("{")]
            except json.JSONDecodeError:
                pass
    raise RuntimeError("the results change faster than they are read")

def check(script, length):
    """Writes a URL, and a second one, as far as the tool takes a file."""
    url = "x:%d-" % length
    url += "u:" * ((length - len(url)) // 2) + "z" * ((length - len(url)) % 2)
    # Enough lines before it that buffers end within it, too.
    before = ["x:before-%d" % number for number in range(9)]
    many = "urls" in script
    with open("urls", "w") as file:
        file.write("".join(line + "\n" for line in (before + [url, "x:after"] if many else [url])))
    command, text = script.split("|", 1)
    with open("script", "w") as file:
        file.write(text.format(control=shlex.quote(control)) + "\n")
    last = (results() or [{"sequence": 0}])[-1]["sequence"]
    subprocess.run(shlex.split(command.format(file="script")), env=dict(os.environ, U=url), stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, timeout=30)
    for _ in range(100):
        new = [result for result in results() if result["sequence"] > last]
        if any(result["url"] == url or result["outcome"] == "rejected" for result in new): break
        subprocess.run(["sleep", "0.01"])
    wanted = {url, "x:after", *before}
    if any(result["outcome"] == "posted" and result["url"] not in wanted for result in new): return "CUT"
    if any(result["outcome"] == "posted" and result["url"] == url for result in new): return "+"
    return "-" if any(result["outcome"] == "rejected" for result in new) else "?"

failed = False
print(f"{'':46}" + " ".join(f"{length:5}" for length in LENGTHS))
folder = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"bundlefs-writers.{os.getpid()}")
os.mkdir(folder)
os.chdir(folder)
try:
    for script in SCRIPTS:
        command, text = script.split("|", 1)
        tool = text.split()[0] if text.split()[0] in ("node", "mawk", "gawk", "perl") else command.split()[0]
        if not shutil.which(tool): continue
        cells = [check(script, length) for length in LENGTHS]
        failed = failed or "CUT" in cells or "?" in cells
        name = (command.replace(" {file}", ": ") + text).replace("bash: ", "", 1 if "urls" in text else 0)
        print(f"{name.replace('{control}', 'F')[:45]:46}" + " ".join(f"{cell:>5}" for cell in cells), flush=True)
finally:
    shutil.rmtree(folder)
sys.exit(failed)
