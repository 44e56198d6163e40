// The part of MPI that is used, loaded at run time, with the handles of Open MPI: pointers to objects of the library.
// MPICH has numbers in their place and is not supported.
#pragma once

#include <cstddef>
#include <string>

#include "core/dynamic_library.hpp"

namespace lockstep::parallel::mpi {

using Comm = struct CommTag*;
using Type = struct TypeTag*;
using Request = struct RequestTag*;
using Matched = struct MatchedTag*;
using Handler = struct HandlerTag*;

struct Status {
  int source = 0, tag = 0, error = 0, cancelled = 0;
  size_t bytes = 0;
};

inline constexpr int kSuccess = 0, kAnySource = -1, kSerialized = 2;

// member, symbol, parameters
#define LOCKSTEP_MPI(F)                                                  \
  F(library_version, MPI_Get_library_version, (char*, int*))             \
  F(initialized, MPI_Initialized, (int*))                                \
  F(finalized, MPI_Finalized, (int*))                                    \
  F(init, MPI_Init_thread, (int*, char***, int, int*))                   \
  F(finalize, MPI_Finalize, ())                                          \
  F(abort, MPI_Abort, (Comm, int))                                       \
  F(duplicate, MPI_Comm_dup, (Comm, Comm*))                              \
  F(set_handler, MPI_Comm_set_errhandler, (Comm, Handler))               \
  F(rank, MPI_Comm_rank, (Comm, int*))                                   \
  F(size, MPI_Comm_size, (Comm, int*))                                   \
  F(send, MPI_Isend, (const void*, int, Type, int, int, Comm, Request*)) \
  F(probe, MPI_Improbe, (int, int, Comm, int*, Matched*, Status*))       \
  F(receive, MPI_Imrecv, (void*, int, Type, Matched*, Request*))         \
  F(test, MPI_Test, (Request*, int*, Status*))                           \
  F(count, MPI_Get_count, (const Status*, Type, int*))                   \
  F(error_text, MPI_Error_string, (int, char*, int*))

struct Library {
  DynamicLibrary library;
#define LOCKSTEP_MPI_MEMBER(member, symbol, parameters) int(*member) parameters = nullptr;
  LOCKSTEP_MPI(LOCKSTEP_MPI_MEMBER)
#undef LOCKSTEP_MPI_MEMBER
  Comm world = nullptr;
  Type bytes = nullptr;
  Handler returns = nullptr;

  /// The process's own; null with the reason where there is none.
  static const Library* find(std::string* reason);
  /// "Open MPI v4.1.4"
  std::string version() const;
};

}  // namespace lockstep::parallel::mpi
