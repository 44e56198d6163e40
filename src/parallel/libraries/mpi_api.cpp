#include "parallel/libraries/mpi_api.hpp"

#include <fmt/format.h>

namespace lockstep::parallel::mpi {
namespace {

struct Found {
  Library library;
  std::string why;
};

Found* load() {
  auto* found = new Found;  // never freed: MPI ends with the process
  Library& mpi = found->library;
  LibrarySearch search;
  search.names = {"libmpi.so.40", "libmpi.so"};
  search.global = true;  // Open MPI's own modules look for its symbols
  std::string why;
  mpi.library = search.load(&why);
  if (!mpi.library) {
    found->why = fmt::format("no Open MPI ({})", why);
    return found;
  }
#define LOCKSTEP_MPI_RESOLVE(member, symbol_name, parameters)                            \
  mpi.member = reinterpret_cast<decltype(mpi.member)>(mpi.library.symbol(#symbol_name)); \
  if (!mpi.member) found->why = fmt::format("{} has no {}", mpi.library.path(), #symbol_name);
  LOCKSTEP_MPI(LOCKSTEP_MPI_RESOLVE)
#undef LOCKSTEP_MPI_RESOLVE
  mpi.world = static_cast<Comm>(mpi.library.symbol("ompi_mpi_comm_world"));
  mpi.bytes = static_cast<Type>(mpi.library.symbol("ompi_mpi_byte"));
  mpi.returns = static_cast<Handler>(mpi.library.symbol("ompi_mpi_errors_return"));
  if (!mpi.world || !mpi.bytes || !mpi.returns)
    found->why = fmt::format("{} is not Open MPI", mpi.library.path());
  return found;
}

}  // namespace

const Library* Library::find(std::string* reason) {
  static const Found* const found = load();
  if (reason) *reason = found->why;
  return found->why.empty() ? &found->library : nullptr;
}

std::string Library::version() const {
  constexpr size_t kLongest = 8192;  // MPI_MAX_LIBRARY_VERSION_STRING is 256 in Open MPI
  std::string text(kLongest, '\0');
  int length = 0;
  if (library_version(text.data(), &length) != kSuccess) return "Open MPI";
  text.resize(static_cast<size_t>(length));
  return text.substr(0, text.find(','));
}

}  // namespace lockstep::parallel::mpi
