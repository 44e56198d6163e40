// The functions of lockstep_video.so. A status of 0 is success; else `message` holds why, cut to `room` bytes.
#pragma once

#include <cstdint>

#ifdef LOCKSTEP_VIDEO_MODULE
#define LOCKSTEP_VIDEO_FUNCTION extern "C" __attribute__((visibility("default")))
#else
#define LOCKSTEP_VIDEO_FUNCTION extern "C"
#endif

/// Raised when the functions change.
inline constexpr int kLockstepVideoVersion = 1;

LOCKSTEP_VIDEO_FUNCTION int lockstep_video_version();
/// `container` is a file name whose suffix specifies the container; `encoder` receives the encoder's name.
LOCKSTEP_VIDEO_FUNCTION int lockstep_video_open(const char* path, const char* container, int width,
                                                int height, double frames_per_second, void** film,
                                                char* encoder, char* message, int room);
LOCKSTEP_VIDEO_FUNCTION int lockstep_video_add(void* film, const uint8_t* rgb, char* message, int room);
LOCKSTEP_VIDEO_FUNCTION int lockstep_video_finish(void* film, char* message, int room);
/// Frees the film, finished or not.
LOCKSTEP_VIDEO_FUNCTION void lockstep_video_close(void* film);
