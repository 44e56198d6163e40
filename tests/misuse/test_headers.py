"""lockstep/lockstep.hpp includes every public header, directly or through another."""
import os
import re
import sys

include = os.path.join(sys.argv[1], "include")
seen, ahead = set(), ["lockstep/lockstep.hpp"]
while ahead:
    name = ahead.pop()
    path = os.path.join(include, name)
    if name in seen or not os.path.exists(path):
        continue
    seen.add(name)
    with open(path, encoding="utf-8") as file:
        ahead += re.findall(r'^#include "(.*)"', file.read(), re.M)
public = {os.path.relpath(os.path.join(folder, name), include)
          for folder, _, names in os.walk(os.path.join(include, "lockstep")) for name in names if name.endswith(".hpp")}
missing = sorted(public - seen)
if missing or len(public) < 40:
    sys.exit(f"lockstep/lockstep.hpp lacks {', '.join(missing)} ({len(public)} headers)")
