# cmake -DROOT=… -DFOLDERS=a;b -DOUT=header -P HashSources.cmake: writes a header with a hash of the contents of all
# sources in the folders; leaves the header alone where nothing changed.
set(texts "")
foreach(folder IN LISTS FOLDERS)
  file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/${folder}/*.cpp ${ROOT}/${folder}/*.hpp ${ROOT}/${folder}/*.def)
  list(SORT files)
  foreach(name IN LISTS files)
    file(SHA256 ${ROOT}/${name} hash)
    string(APPEND texts "${name} ${hash}\n")
  endforeach()
endforeach()
string(SHA256 whole "${texts}")
string(SUBSTRING ${whole} 0 32 whole)
file(CONFIGURE OUTPUT ${OUT} CONTENT "#pragma once\n#define LOCKSTEP_GENERATOR_HASH \"${whole}\"\n")
