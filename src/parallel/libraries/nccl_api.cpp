#include "parallel/libraries/nccl_api.hpp"

#include <fmt/format.h>

namespace lockstep::parallel::nccl {
namespace {

struct Found {
  Library library;
  std::string why;
};

Found* load() {
  auto* found = new Found;  // never freed: communicators may end during the process's exit
  Library& nccl = found->library;
  const device::cuda::Driver* const driver = device::cuda::Driver::find(&found->why);
  if (!driver) return found;
  LibrarySearch search;
  search.names = {"libnccl.so.2"};
  search.python_folders = {"nvidia/nccl/lib", "nvidia/cu13/lib"};
  std::string why;
  nccl.library = search.load(&why);
  if (!nccl.library) {
    found->why = fmt::format("no NCCL ({})", why);
    return found;
  }
#define LOCKSTEP_NCCL_RESOLVE(member, symbol_name, parameters)                              \
  nccl.member = reinterpret_cast<decltype(nccl.member)>(nccl.library.symbol(#symbol_name)); \
  if (!nccl.member) found->why = fmt::format("{} has no {}", nccl.library.path(), #symbol_name);
  LOCKSTEP_NCCL(LOCKSTEP_NCCL_RESOLVE)
#undef LOCKSTEP_NCCL_RESOLVE
  nccl.error_text = nccl.library.function<const char*(int)>("ncclGetErrorString");
  nccl.stream_query = driver->library.function<device::cuda::Result(StreamHandle)>("cuStreamQuery");
  if (!nccl.error_text || !nccl.stream_query) found->why = "NCCL or the driver lacks a function";
  return found;
}

}  // namespace

const Library* Library::find(std::string* reason) {
  static const Found* const found = load();
  if (reason) *reason = found->why;
  return found->why.empty() ? &found->library : nullptr;
}

}  // namespace lockstep::parallel::nccl
