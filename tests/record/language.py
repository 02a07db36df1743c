"""Record what the real Hydra makes of the cases below.

    PEER/bin/python tests/record/language.py        (a Python with hydra-core 1.3)

writes tests/data/language.json, which tests/cli/config/test_hydra_language.py replays against kiln. A case is a name,
files ("config" is the primary one; ".yaml" is left out), arguments, and why kiln answers otherwise where
it does (then the test holds that it still differs)."""
import json
import os
import shutil
import sys
import tempfile
import warnings

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests/peer"), os.path.join(ROOT, "tests/cli")]

from hydra_diff import ENV, hydra_compose  # noqa: E402
from language_values import encode  # noqa: E402

CASES = []


def case(name, files, *arguments, differs=None):
    files = {"config": files} if isinstance(files, str) else files
    CASES.append({"name": name, "files": files, "arguments": list(arguments), "differs": differs})


G = {"g/one": "v: one\nw: 1\n", "g/two": "v: two\n", "g/sub/a": "s: a\n", "g/sub/b": "s: b\n",
     "h/one": "u: 1\n", "h/two": "u: 2\n"}

# ---- YAML as OmegaConf reads it
case("integers", "a: [0, -1, +1, 007, 08, 0o7, 0x1F, 0b11, 1_000, _1, 1:30, 190:20:30, 1:60, -0, 0b2, 1__0]\n")
case("floats", "a: [1., .5, -.5, 1e3, 1e+3, 1E-3, 1.e3, 1e, .e3, 1e0_3, 1_0.5, 1:30.5, ._1, .1_0e-1, 0.00001, 1e22]\n")
case("infinite", "a: [.inf, -.inf, +.Inf, .INF, .iNF, .nan, .NaN, .NAN, nan, inf, 1e400, -0.0]\n")
case("bools and nulls", "a: [yes, No, on, OFF, true, tRue, y, N, ~, null, NULL, nULL, None, '', ]\nb:\n")
case("dates are text", "a: [2001-01-01, 2001-12-14t21:59:43.10-05:00, 12:30]\n")
case("quoted", "a: ['1', \"true\", 'null', '???', 'it''s', \"\\x41\\u00e9\\t\", '1e3', ' a ']\n")
case("tags", "a: [!!str 1, !!int '3', !!float 1, !!bool 'on', !!null '', !!str null, !!float '1']\n")
case("unknown tag", "a: !foo 1\n")
case("typed keys", "1: a\ntrue: b\n1.5: c\nx: {2: d, no: e}\n")
case("null key", "null: a\n")
case("twice the same key", "a: 1\nb: 2\na: 3\n")
case("anchors", "a: &x {p: 1, q: [1]}\nb: *x\nc: [*x, 2]\n")
case("merge keys", "a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}\nc:\n  <<: [{p: 9}, *x]\n  r: 4\n")
case("merge key of a list", "a:\n  <<: [1]\n")
case("blocks", "a: |\n  x\n   y\n\n  z\nb: >-\n  x\n  y\n\n  z\nc: |+\n  x\n\nd: plain\n  on two lines\n")
case("no config", "# nothing\n")
case("a list on top", "- 1\n")
case("two documents", "a: 1\n---\nb: 2\n")

# ---- Interpolation
N = "a: 1\nn: {x: 5, y: '${.x}', m: {z: '${..x}', up: '${...a}'}, l: [1, '${n.x}']}\ns: x\nmis: ???\nnul: null\ne: ''\n"
case("paths", N + "v: ['${a}', '${n.y}', '${n.m.z}', '${n.m.up}', '${n.l[1]}', '${n.l.0}', '${n[x]}', '${[n][x]}']\n")
case("nested paths", N + "v: '${n.${s}}'\nw: '${${s}}'\nx: q\n")
case("in text", N + "l: [1, q, null, {z: 1.0}]\nv: '<${a}-${nul}-${l}-${e}->'\nt: true\nw: ${t}x\nf: 1e-5\nu: x${f}\n")
case("to nodes", N + "v: ${n}\nw: ${n.l}\nu: ${v.m.z}\nr: ${w[1]}\n")
case("escaped", "a: 1\nv: ['\\${a}', '\\\\${a}', '\\\\\\${a}', '$a', '$', '${a}$', '\\a']\n")
case("missing spreads", N + "v: x-${mis}\nw: ${mis}\nu: ${mis.x}\nt: ${w.y}\nr: ${n.${mis}}\n")
case("missing in a resolver", N + "v: ${oc.decode:${mis}}\nw: ${oc.select:mis,3}\nu: ${oc.create:${mis}}\n")
case("nothing there", N + "v: ${nope}\n")
case("above the top", N + "v: ${..a}\n")
case("cycle", "a: ${b}\nb: x${a}\n")
case("not closed", "a: ${b\n")
case("of a list's end", N + "v: ${n.l[2]}\n")
case("environment", "a: ${oc.env:CASE_NUM}\nb: ${oc.env:CASE_UNSET,null}\nc: ${oc.env:CASE_UNSET,1e3}\n"
     "d: ${oc.env:CASE_EMPTY,x}\nf: ${oc.env:CASE_HOME}/x\ng: ${oc.decode:${oc.env:CASE_NUM}}\n")
case("environment's fallback is a list", "g: '${oc.env:CASE_UNSET,[1]}'\n")
case("environment unset", "a: ${oc.env:CASE_UNSET}\n")
case("decode", "a: ['${oc.decode:null}', \"${oc.decode:'1e3'}\", \"${oc.decode:'a b'}\"]\n"
     "b: ${oc.decode:${c}}\nc: '7'\n")
case("decode broken", "a: \"${oc.decode:'[1'}\"\n")
case("select", "a: {b: 1}\nv: ['${oc.select:a.b}', '${oc.select:a.c,2}', '${oc.select:zz}', '${oc.select:zz,a b}']\n"
     "r: {x: 1, y: '${oc.select:.x}', z: '${oc.select:.q,${a.b}}'}\n")
case("create", "a: ${oc.create:[1,2]}\nb: \"${oc.create:{x: ${c}}}\"\nc: 3\nd: ${a[1]}\ne: ${b.x}\n")
case("create of a bool", "a: ${oc.create:yes}\n")
case("keys and values", "d: {a: 1, b: '${d.a}'}\nk: ${oc.dict.keys:d}\nv: ${oc.dict.values:d}\nf: ${k[1]}\n")
case("keys of a number", "d: 1\nk: ${oc.dict.keys:d}\n")
case("decode of a number", "c: 7\nv: ${oc.decode:${c}}\n")
case("unknown resolver", "a: ${nope:1}\n")
case("resolver arguments", "a: ${oc.env:CASE_UNSET,'a, b'}\nb: ${oc.env:CASE_UNSET,a\\,b}\nc: ${oc.env:CASE_UNSET, x y }\n"
     "d: ${oc.env:CASE_UNSET,http://h:80/p}\ne: ${oc.env:CASE_UNSET,\"q'q\"}\n")

# ---- Overrides
B = "a: 1\ns: x\nn: {x: 2, m: {y: 3}}\nl: [1, 2, {q: 3}]\nref: ${n}\nnul: null\nmis: ???\n"
case("set", B, "a=2", "n.x=y", "n.m.y=[1,2]", "nul=1", "mis=2")
case("set what is not there", B, "b=2")
case("set below a number", B, "a.b=2")
case("add", B, "+b=2", "+n.z.w=3", "++n.x=4", "++c.d=5")
case("add what is there", B, "+a=2")
case("add below a number", B, "+a.b=2")
case("delete", B, "~a", "~n.m", "~s=x")
case("delete another value", B, "~s=y")
case("delete what is not there", B, "~zz")
case("list items", B, "l.0=9", "l.2.q=8")
case("list item too far", B, "l.3=9")
case("add to a list", B, "+l.3=9")
case("mapping over mapping", B, "n={x: 7}", "++n={new: 1}")
case("mapping over number", B, "a={x: 7}")
case("number over mapping", B, "n=1")
case("list over list", B, "l=[]")
case("through a reference", B, "ref.x=9")
case("values", B, "a=[0x1F,1_000,1e3,true,null,NULL,nan,-inf,007,1.,.5,'1',yes,on]")
case("text", B, "s=a b", "+b='a, b'", "+c=\"it's\"", "+d='it\\'s'", "+e=a\\,b", "+f=C:/x", "+g=a\\ ", "+h=")
case("quotes and backslashes", B, "+a1='\\\\'", "+a2=\"\\\"\"", "+a3='a\\b'", "+a4='\\\\\\''", "+a5=\\\\", "+a6='\\n'")
case("odd letters", B, "+a1=http://h:80/p", "+a2=a@b", "+a3=$x", "+a4=a%b", "+a5=*|+-", "+a6=a.b")
case("an equals sign", B, "s=a=b")
case("a bracket left open", B, "s=[1")
case("a quote left open", B, "s='a")
case("lists and mappings", B, "+b=[1,[2,{c: d}],'x, y',null]", "+c={a: 1,b: [1, 2],c d: e,1: f,true: g}", "+d={}", "+e=[]")
case("quoted key", B, "+b={'a': 1}")
case("interpolation", B, "s=${a}", "+b=x-${n.x}", "+c='${n.x}'", "+d=[${a},${s}]", "+e='\\${a}'")
case("casts", B, "+a1=int(3.9)", "+a2=float(1)", "+a3=str([1,2])", "+a4=bool(1)", "+a5=int('7')", "+a6=bool([0,1])",
     "+a7=str(true)", "+a8=float(1e3)")
case("cast that fails", B, "a=int(x)")
case("sort", B, "+b=sort([3,1,2])", "+c=[a,sort([2,1],reverse=true)]")
case("sweep in one run", B, "a=1,2")
case("unknown function", B, "a=nope(1)")
case("the last wins", B, "a=2", "a=3")

# ---- Defaults lists
case("self last by default", {**G, "config": "defaults:\n  - g: one\ng: {v: mine}\n"})
case("self first", {**G, "config": "defaults:\n  - _self_\n  - g: one\ng: {v: mine}\n"})
case("self twice", {**G, "config": "defaults:\n  - _self_\n  - g: one\n  - _self_\n"})
case("choose", {**G, "config": "defaults:\n  - g: one\n  - h: one\n"}, "g=two", "h=two")
case("choose null", {**G, "config": "defaults:\n  - g: one\n"}, "g=null")
case("numbers too large", B, "+a1=.4e9999", "+a2=-1e999", "+a3=1e-999")
case("cast a word to bool", B, "+b=bool(yes)")
case("choose nothing", {**G, "config": "defaults:\n  - g: ???\n"})
case("choose what is not there", {**G, "config": "defaults:\n  - g: one\n"}, "g=nope")
case("several", {**G, "config": "defaults:\n  - g: [one, two]\n"})
case("several from an argument", {**G, "config": "defaults:\n  - g: [one]\n"}, "g=[two,one]")
case("optional", {**G, "config": "defaults:\n  - optional g: nope\n  - optional none: x\n  - h: one\n"})
case("override", {**G, "config": "defaults:\n  - base\n  - override g: two\n", "base": "defaults:\n  - g: one\n"})
case("override not last", {**G, "config": "defaults:\n  - g: one\n  - override g: two\n  - h: one\n"})
case("override of nothing", {**G, "config": "defaults:\n  - override g: two\n"})
case("nested group", {**G, "config": "defaults:\n  - g: three\n", "g/three": "defaults:\n  - sub: a\n  - _self_\nv: 3\n"},
     "g/sub=b")
case("absolute group", {**G, "config": "defaults:\n  - g: three\n", "g/three": "defaults:\n  - /h: two\nv: 3\n"})
case("override deep", {**G, "config": "defaults:\n  - g: three\n  - override g/sub: b\n",
                       "g/three": "defaults:\n  - sub: a\n"})
case("packages", {**G, "config": "defaults:\n  - g@x.y: one\n  - g@_global_: two\n  - h@g: one\n"})
case("here", {**G, "config": "defaults:\n  - g: three\n", "g/three": "defaults:\n  - sub@_here_: a\n  - /h@_here_.k: two\n"})
case("global inside", {**G, "config": "defaults:\n  - g: three\n", "g/three": "defaults:\n  - /h@_global_.k: two\n  - /h@r: one\n"})
case("header", {**G, "config": "defaults:\n  - g: three\n", "g/three": "# @package a.b\nv: 3\n"})
case("header from the top", {**G, "config": "defaults:\n  - g: three\n", "g/three": "# @package _global_.a.b\nv: 3\n"})
case("header global", {**G, "config": "defaults:\n  - g: three\n",
                       "g/three": "# @package _global_\ndefaults:\n  - sub: a\nv: 3\n"})
case("at beats header", {**G, "config": "defaults:\n  - g@k: three\n", "g/three": "# @package a.b\nv: 3\n"})
case("package of a group at another", {**G, "config": "defaults:\n  - g@k: three\n", "g/three": "defaults:\n  - sub: a\n"},
     "g/sub@k.sub=b")
case("one group twice", {**G, "config": "defaults:\n  - g@x: one\n  - g@y: two\n"}, "g@x=two", "~g@y")
case("one group twice in one place", {**G, "config": "defaults:\n  - g: one\n  - g: two\n"})
case("interpolated option", {**G, "config": "defaults:\n  - g: one\n  - h: ${g}\n"}, "g=two")
case("interpolated from nothing", {**G, "config": "defaults:\n  - h: ${nope}\n"})
case("experiment", {**G, "config": "defaults:\n  - g: one\n  - h: one\n  - exp: null\na: 1\n",
                    "exp/e": "# @package _global_\ndefaults:\n  - override /g: two\na: 2\nh: {u: 9}\n"}, "exp=e", "h.u=8")
case("experiment appended", {**G, "config": "defaults:\n  - g: one\n",
                             "exp/e": "# @package _global_\ndefaults:\n  - override /g: two\na: 2\n"}, "+exp=e")
case("append", {**G, "config": "a: 1\n"}, "+g=one", "+h@k=two", "g.v=9")
case("append what is listed", {**G, "config": "defaults:\n  - g: one\n"}, "+g=two")
case("choose what is not listed", {**G, "config": "a: 1\n"}, "g=one")
case("delete a choice", {**G, "config": "defaults:\n  - g: one\n  - h: one\n"}, "~g", "~h=one")
case("delete another choice", {**G, "config": "defaults:\n  - g: one\n"}, "~g=two")
case("cycle of configs", {"config": "defaults:\n  - b\n", "b": "defaults:\n  - config\n"})
case("a list over a mapping", {"config": "defaults:\n  - b\n  - c\n", "b": "v: {p: 1}\n", "c": "v: [1]\n"})
case("a number over a mapping", {"config": "defaults:\n  - b\n  - c\n", "b": "v: {p: 1}\n", "c": "v: 1\n"})
case("null over a mapping", {"config": "defaults:\n  - b\n  - c\n", "b": "v: {p: 1}\nw: null\n", "c": "v: null\nw: {p: 1}\n"})
case("missing over a value", {"config": "defaults:\n  - b\n  - c\n", "b": "v: 1\nw: {p: 1}\n", "c": "v: ???\nw: ???\n"})
case("a mapping over a reference", {"config": "defaults:\n  - b\n  - c\n", "b": "n: {p: 1}\nv: ${n}\n", "c": "v: {q: 2}\n"})
case("no defaults list", {**G, "config": "defaults: {g: one}\n"})

# ---- Where kiln answers otherwise
case("an anchor given twice", "a: &x 1\nb: &x 2\nc: *x\n", differs="YAML lets an anchor be given again")
case("an equals sign in a file", "a: =\n", differs="PyYAML knows a tag for it but no value")
case("a question mark in a list", "a: [x?y]\n", differs="PyYAML does not read it")
case("words of other languages", B, "s=größe", differs="an argument's text may be any UTF-8")
case("interpolation in interpolation", B, "s=${oc.decode:${oc.env:CASE_NUM}}", differs="Hydra's grammar has no nesting here")
case("delete what is missing", B, "~mis", differs="Hydra does not see a key whose value is ???")
case("index by interpolation", "l: [1, 2]\ni: 1\nv: ${l[${i}]}\n", differs="OmegaConf wants text")
case("delete a list item", B, "~l.0", differs="Hydra dies of a TypeError")
case("list over a reference", {"config": "defaults: [b, c]\n", "b": "w: {q: 1}\nv: ${w}\n", "c": "v: [1]\n"},
     differs="what the reference means does not matter to what replaces it")
case("a mapping as fallback", "a: '${oc.select:zz,{x: 1}}'\n", differs="OmegaConf refuses what it takes from oc.create")
case("a key that starts with an interpolation", "s: x\nxx: 1\nv: '${${s}x}'\n", differs="Hydra's grammar has no such key")
case("decode of a list", "v: ${oc.decode:${oc.env:CASE_LIST}}\n", differs="OmegaConf refuses what it takes from oc.create")
case("nodes in text", "n: {a: 1, b: '${.a}'}\nv: <${n}>\n")
case("a missing item", "mis: ???\nv: '${oc.create:[1,${mis}]}'\n", differs="the list is there, its item is missing")
case("text on top", "hello\n", differs="Hydra makes a key without a value of it")
case("delete by null", B, "~a=null", differs="Hydra takes null for no value and deletes anything")
case("twice the same key, otherwise spelled", "true: 1\nyes: 2\n", differs="both are true")

# ---- The same config more than once: it is merged as often as it is listed
TWICE = {"base": "v: base\nb: 1\n", "other": "v: other\nb: 2\n", "more": "defaults: [base, _self_]\nz: 1\n", **G}
for number, entries in enumerate(["base, other, base, _self_", "more, other, base", "base, other, more", "base@q, other, base@q",
                                  "{g: [one, two, one]}", "g/one, g/two, g/one", "{g: one}, g/two, g/one",
                                  "{g: one}, {g: one}", "base, other, /base", "_self_, base, other, base"]):
    case(f"twice {number}", {"config": f"defaults: [{entries}]\n", **TWICE})
case("twice by argument", {"config": "defaults: [{g: [one, two]}]\n", **TWICE}, "g=[one,two,one]")

# ---- Keys of the program's own node
case("own key that is not there", "hydra: {no_such_node: {a: 1}}\n")
case("own key that is nearly there", "hydra: {swep: {dir: x}}\n")
case("own key deeper", "hydra: {job: {nmae: x}}\n")
case("own key of sweep", "hydra: {sweep: {subdri: x}}\n")
case("own key of runtime", "hydra: {runtime: {x: 1}}\n")
case("own key of a group", {"config": "defaults: [_self_, hydra/no: x]\n", "hydra/no/x": "a: 1\n"})
case("own key by argument", "a: 1\n", "+hydra.no_such_node=1")
case("own keys that are there", "a: 1\nhydra: {mode: RUN, verbose: false, output_subdir: x, job: {name: n, chdir: false, env_set: {A: b}, "
     "config: {override_dirname: {kv_sep: '-'}}}, sweep: {dir: d, subdir: s}, run: {dir: r}, help: {header: h}, "
     "job_logging: {x: 1}, callbacks: {c: {x: 1}}}\n")


def main():
    warnings.simplefilter("ignore")
    os.environ.update(ENV)
    folder = tempfile.mkdtemp()
    for entry in CASES:
        shutil.rmtree(folder)
        for name, text in entry["files"].items():
            path = os.path.join(folder, name + ".yaml")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        answer, what = hydra_compose(folder, entry["arguments"])
        if answer == "ok":
            entry["value"] = encode(what)
        else:
            entry["refused"] = what.replace(folder, "").splitlines()[0][:100]
        if entry["differs"] is None:
            del entry["differs"]
    shutil.rmtree(folder)
    names = [entry["name"] for entry in CASES]
    assert len(set(names)) == len(names), "two cases of one name"
    with open(os.path.join(ROOT, "tests/data/language.json"), "w", encoding="utf-8") as f:
        f.write("[\n" + ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in CASES) + "\n]\n")
    print(f"{len(CASES)} cases")


if __name__ == "__main__":
    main()
