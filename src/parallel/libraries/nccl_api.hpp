// The part of NCCL that is used, loaded at run time. Types and values as its header defines them.
#pragma once

#include <cstddef>
#include <string>

#include "core/dynamic_library.hpp"
#include "device/cuda/libraries/driver.hpp"

namespace lockstep::parallel::nccl {

using Communicator = struct CommunicatorTag*;
using device::cuda::StreamHandle;
struct UniqueId {
  char text[128];
};
inline constexpr int kSuccess = 0, kInProgress = 7, kBytes = 1, kFloat = 7, kDouble = 8, kSum = 0;

// member, symbol, parameters
#define LOCKSTEP_NCCL(F)                                                         \
  F(version, ncclGetVersion, (int*))                                             \
  F(unique_id, ncclGetUniqueId, (UniqueId*))                                     \
  F(begin, ncclCommInitRank, (Communicator*, int, UniqueId, int))                \
  F(destroy, ncclCommDestroy, (Communicator))                                    \
  F(abort, ncclCommAbort, (Communicator))                                        \
  F(async_error, ncclCommGetAsyncError, (Communicator, int*))                    \
  F(group_start, ncclGroupStart, ())                                             \
  F(group_end, ncclGroupEnd, ())                                                 \
  F(send, ncclSend, (const void*, size_t, int, int, Communicator, StreamHandle)) \
  F(receive, ncclRecv, (void*, size_t, int, int, Communicator, StreamHandle))    \
  F(all_reduce, ncclAllReduce, (const void*, void*, size_t, int, int, Communicator, StreamHandle))

struct Library {
  DynamicLibrary library;
#define LOCKSTEP_NCCL_MEMBER(member, symbol, parameters) int(*member) parameters = nullptr;
  LOCKSTEP_NCCL(LOCKSTEP_NCCL_MEMBER)
#undef LOCKSTEP_NCCL_MEMBER
  const char* (*error_text)(int) = nullptr;
  device::cuda::Result (*stream_query)(StreamHandle) = nullptr;

  /// The process's own; null with the reason where there is none.
  static const Library* find(std::string* reason);
};

}  // namespace lockstep::parallel::nccl
