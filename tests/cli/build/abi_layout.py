"""What a plugin takes from the headers of components when it is compiled: the layout of structs, the values of enumerators and
numbers, and the types of functions. Read from the debug information of a file that includes them all."""
import os
import pathlib
import re
import subprocess

MEMBERS = {"DW_TAG_structure_type", "DW_TAG_union_type", "DW_TAG_enumeration_type", "DW_TAG_subroutine_type",
           "DW_TAG_array_type"}


class Entry:
    def __init__(self, tag):
        self.tag, self.children, self.name, self.type, self.size, self.at, self.value = tag, [], None, None, None, 0, None


def headers(include):
    """Of components: all but those of embedding programs, and of the Slurm launcher's parts."""
    found = [os.path.join(folder, name) for folder, _, names in os.walk(os.path.join(include, "kiln")) for name in names
             if os.path.basename(folder) not in ("embed", "slurm")]
    return sorted(os.path.relpath(path, include) for path in found)


def _attribute(entry, line):
    key, _, text = line.partition(":")
    key = key.split()[-1]
    if key == "DW_AT_name":
        entry.name = re.sub(r"^\(string\) ", "", text.rsplit(": ", 1)[-1].strip())
    elif key == "DW_AT_type":
        entry.type = re.search(r"<(\w+)>", text).group(1)
    elif key == "DW_AT_byte_size":
        entry.size = int(text.split()[-1], 0)
    elif key == "DW_AT_data_member_location":
        entry.at = int(text.split()[-1], 0)
    elif key in ("DW_AT_const_value", "DW_AT_upper_bound"):
        entry.value = int(text.split()[-1], 0)


def _entries(path):
    """By offset, from readelf."""
    text = subprocess.run(["readelf", "-W", "--debug-dump=info", path], check=True, capture_output=True, text=True).stdout
    entries, above = {}, []
    for line in text.splitlines():
        head = re.match(r"\s*<(\d+)><([0-9a-f]+)>: Abbrev Number: \d+ \((\w+)\)", line)
        if head:
            entry = entries["0x" + head.group(2)] = Entry(head.group(3))
            del above[int(head.group(1)):]
            if above:
                above[-1].children.append(entry)
            above.append(entry)
        elif "DW_AT_" in line:
            _attribute(above[-1], line)
    return entries


class Layout:
    """structs: name -> (size, {member: (offset, type)}); enumerators: name -> value; functions: name -> type."""

    def __init__(self, include, folder):
        self.include, self.folder = include, folder
        names = headers(include)
        text = "".join(pathlib.Path(include, name).read_text() for name in names)
        self.exported = sorted(set(re.findall(r"^KILN_API [^;{]*?\b(kiln_\w+)\(", text, re.M)))
        source = "".join(f'#include "{name}"\n' for name in names)
        self._compile(source + "".join(f"__typeof__({name}) *abi_{name};\n" for name in self.exported))
        self.numbers = self._numbers(source)

    def _compile(self, source):
        path = os.path.join(self.folder, "layout.c")
        pathlib.Path(path).write_text(source)
        subprocess.run(["cc", "-std=gnu17", "-g", "-fno-eliminate-unused-debug-types", "-I", self.include, "-c", path, "-o",
                        path + ".o"], check=True)
        self.entries = _entries(path + ".o")
        self.structs, self.enumerators, self.functions = {}, {}, {}
        for entry in self.entries.values():
            if entry.tag == "DW_TAG_structure_type" and entry.name and entry.name.startswith("Kiln") and entry.size:
                self.structs[entry.name] = (entry.size, {member.name: (member.at, self.text(member.type))
                                                         for member in entry.children if member.tag == "DW_TAG_member"})
            elif entry.tag == "DW_TAG_enumerator" and entry.name.startswith("KILN_"):
                self.enumerators[entry.name] = entry.value
            elif entry.tag == "DW_TAG_variable" and entry.name and entry.name.startswith("abi_"):
                self.functions[entry.name[4:]] = self.text(entry.type)

    def _numbers(self, source):
        """Macros that are numbers."""
        done = subprocess.run(["cc", "-std=gnu17", "-I", self.include, "-dM", "-E", "-x", "c", "-"], input=source, check=True,
                              capture_output=True, text=True)
        return dict(re.findall(r"^#define (KILN_\w+) \(?([\d.x]+[a-fA-Fu\d]*)\)?$", done.stdout, re.M))

    def text(self, at):
        """A type as text; named structs and enumerations by their name."""
        if at is None:
            return "void"
        entry = self.entries[at]
        tag = entry.tag
        if tag == "DW_TAG_pointer_type":
            return self.text(entry.type) + " *"
        if tag in ("DW_TAG_const_type", "DW_TAG_volatile_type"):
            return self.text(entry.type) + " " + tag[len("DW_TAG_"):-len("_type")]
        if tag == "DW_TAG_array_type":
            return self.text(entry.type) + "".join(f"[{(child.value if child.value is not None else -1) + 1}]"
                                                   for child in entry.children)
        if tag == "DW_TAG_subroutine_type":
            arguments = ["..." if child.tag == "DW_TAG_unspecified_parameters" else self.text(child.type)
                         for child in entry.children]
            return f"{self.text(entry.type)} ({', '.join(arguments)})"
        if entry.name is None and tag in MEMBERS:
            return "{ " + "".join(f"{child.name} {child.value or child.at} {self.text(child.type) if child.type else ''}; "
                                  for child in entry.children) + "}"
        return entry.name


def growing(include):
    """The structs that may get members, as kiln/plugin.h says."""
    rules = pathlib.Path(include, "kiln/plugin.h").read_text().split("All other structs stay")[0]
    return set(re.findall(r"\bKiln[A-Z]\w+", rules)) | {"KilnPluginInfo"}


def _same(old, new):
    """Of a member or function; an unnamed union may get members."""
    return old == new or (old.startswith("{") and new.startswith(old[:-1]))


def changes(old, new, grows):
    """What a plugin compiled for `old` finds different in `new`, as texts."""
    found = []
    for name, (size, members) in old.structs.items():
        new_size, new_members = new.structs.get(name, (0, {}))
        if new_size != size and not (new_size > size and (name in grows or name.endswith("Ops"))):
            found.append(f"{name} had {size} bytes, now {new_size}")
        for member, (at, text) in members.items():
            new_at, new_text = new_members.get(member, (-1, ""))
            if at != new_at or not _same(text, new_text):
                found.append(f"{name}.{member} was {text} at {at}, now {new_text} at {new_at}")
    for what in ("enumerators", "functions", "numbers"):
        has = getattr(new, what)
        found += [f"{name} was {text}, now {has.get(name)}" for name, text in getattr(old, what).items()
                  if has.get(name) != text and not name.endswith("_COUNT")]
    return found
