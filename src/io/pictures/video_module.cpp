// lockstep_video.so: FFmpeg's encoder, scaler and container behind five C functions.
#include "io/pictures/video_module.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/opt.h>
#include <libswscale/swscale.h>
}

namespace {

std::string error_text(int status) {
  char text[AV_ERROR_MAX_STRING_SIZE] = "";
  av_strerror(status, text, sizeof text);
  return text;
}

/// Negative statuses of FFmpeg become exceptions.
int must(int status, const char* what) {
  if (status < 0) throw std::runtime_error(std::string(what) + ": " + error_text(status));
  return status;
}
template <class T>
T* must(T* made, const char* what) {
  if (!made) throw std::runtime_error(what);
  return made;
}

class Film {
 public:
  Film(int width, int height) : width_(width), height_(height) {}
  ~Film() {
    sws_freeContext(scaler_);
    av_frame_free(&frame_);
    av_packet_free(&packet_);
    avcodec_free_context(&encoder_);
    if (output_ && output_->pb) avio_closep(&output_->pb);
    avformat_free_context(output_);
  }
  Film(const Film&) = delete;
  Film& operator=(const Film&) = delete;

  void open(const char* path, const char* container, double frames_per_second) {
    must(avformat_alloc_output_context2(&output_, av_guess_format(nullptr, container, nullptr),
                                        output_name(container), path),
         "no such container");
    open_encoder(av_d2q(frames_per_second, 1000000));
    AVStream* const stream = must(avformat_new_stream(output_, nullptr), "no stream");
    stream->time_base = encoder_->time_base;
    stream->avg_frame_rate = encoder_->framerate;
    must(avcodec_parameters_from_context(stream->codecpar, encoder_), "stream");
    must(avio_open(&output_->pb, path, AVIO_FLAG_WRITE), "cannot write");
    AVDictionary* options = nullptr;
    av_dict_set(&options, "movflags", "+faststart", 0);  // plays while it is still loading
    const int status = avformat_write_header(output_, &options);
    av_dict_free(&options);
    must(status, "header");
    prepare_frame();
  }
  void add(const uint8_t* rgb) {
    must(av_frame_make_writable(frame_), "frame");
    const uint8_t* const planes[] = {rgb};
    const int pitch[] = {3 * width_};
    sws_scale(scaler_, planes, pitch, 0, height_, frame_->data, frame_->linesize);
    repeat_last_lines();
    frame_->pts = next_++;
    encode(frame_);
  }
  void finish() {
    encode(nullptr);
    must(av_write_trailer(output_), "end of the film");
    must(avio_closep(&output_->pb), "end of the film");
  }
  const char* encoder() const { return encoder_->codec->name; }

 private:
  /// Null if the suffix specifies a container, else MP4.
  static const char* output_name(const char* container) {
    return av_guess_format(nullptr, container, nullptr) ? nullptr : "mp4";
  }

  /// The first of these that opens.
  void open_encoder(AVRational rate) {
    std::string reasons;
    for (const char* name : {"libx264", "libopenh264", "h264_nvenc", "mpeg4"}) {
      const AVCodec* const codec = avcodec_find_encoder_by_name(name);
      if (!codec) continue;
      encoder_ = must(avcodec_alloc_context3(codec), "no encoder");
      encoder_->width = width_ + width_ % 2;
      encoder_->height = height_ + height_ % 2;
      encoder_->time_base = av_inv_q(rate);
      encoder_->framerate = rate;
      encoder_->pix_fmt = AV_PIX_FMT_YUV420P;
      encoder_->colorspace = AVCOL_SPC_BT709;
      encoder_->color_primaries = AVCOL_PRI_BT709;
      encoder_->color_trc = AVCOL_TRC_BT709;
      encoder_->color_range = AVCOL_RANGE_MPEG;
      if (output_->oformat->flags & AVFMT_GLOBALHEADER) encoder_->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
      // Thin lines and words must stay readable: a constant quality, not a constant rate.
      av_opt_set(encoder_->priv_data, "crf", "18", 0);
      av_opt_set(encoder_->priv_data, "preset", "veryfast", 0);
      if (std::strcmp(name, "mpeg4") == 0) {
        encoder_->flags |= AV_CODEC_FLAG_QSCALE;
        encoder_->global_quality = 3 * FF_QP2LAMBDA;
      }
      const int status = avcodec_open2(encoder_, codec, nullptr);
      if (status >= 0) return;
      reasons += std::string(reasons.empty() ? "" : ", ") + name + " (" + error_text(status) + ")";
      avcodec_free_context(&encoder_);
    }
    throw std::runtime_error("no encoder opens" + (reasons.empty() ? reasons : ": " + reasons));
  }

  void prepare_frame() {
    frame_ = must(av_frame_alloc(), "no memory");
    frame_->format = encoder_->pix_fmt;
    frame_->width = encoder_->width;
    frame_->height = encoder_->height;
    must(av_frame_get_buffer(frame_, 0), "no memory");
    packet_ = must(av_packet_alloc(), "no memory");
    scaler_ = must(sws_getContext(width_, height_, AV_PIX_FMT_RGB24, width_, height_, AV_PIX_FMT_YUV420P,
                                  SWS_BICUBIC | SWS_ACCURATE_RND, nullptr, nullptr, nullptr),
                   "no scaler");
    const int* const bt709 = sws_getCoefficients(SWS_CS_ITU709);
    sws_setColorspaceDetails(scaler_, bt709, 1, bt709, 0, 0, 1 << 16, 1 << 16);
  }

  /// The line and column by which an odd side grows.
  void repeat_last_lines() {
    if (height_ % 2)
      std::copy_n(frame_->data[0] + (height_ - 1) * frame_->linesize[0], frame_->linesize[0],
                  frame_->data[0] + height_ * frame_->linesize[0]);
    if (width_ % 2)
      for (int row = 0; row < frame_->height; ++row) {
        uint8_t* const line = frame_->data[0] + row * frame_->linesize[0];
        line[width_] = line[width_ - 1];
      }
  }

  /// A frame, or null for those that the encoder holds back.
  void encode(const AVFrame* frame) {
    must(avcodec_send_frame(encoder_, frame), "encoder");
    while (true) {
      const int status = avcodec_receive_packet(encoder_, packet_);
      if (status == AVERROR(EAGAIN) || status == AVERROR_EOF) return;
      must(status, "encoder");
      packet_->duration = 1;
      av_packet_rescale_ts(packet_, encoder_->time_base, output_->streams[0]->time_base);
      packet_->stream_index = 0;
      must(av_interleaved_write_frame(output_, packet_), "cannot write");
    }
  }

  const int width_, height_;
  int64_t next_ = 0;
  AVFormatContext* output_ = nullptr;
  AVCodecContext* encoder_ = nullptr;
  AVFrame* frame_ = nullptr;
  AVPacket* packet_ = nullptr;
  SwsContext* scaler_ = nullptr;
};

template <class Work>
int guarded(char* message, int room, Work work) {
  try {
    work();
    return 0;
  } catch (const std::exception& error) {
    std::snprintf(message, static_cast<size_t>(room), "%s", error.what());
    return 1;
  }
}

}  // namespace

int lockstep_video_version() { return kLockstepVideoVersion; }

int lockstep_video_open(const char* path, const char* container, int width, int height,
                        double frames_per_second, void** film, char* encoder, char* message, int room) {
  return guarded(message, room, [&] {
    av_log_set_level(AV_LOG_QUIET);
    auto made = std::make_unique<Film>(width, height);
    made->open(path, container, frames_per_second);
    std::snprintf(encoder, static_cast<size_t>(room), "%s", made->encoder());
    *film = made.release();
  });
}

int lockstep_video_add(void* film, const uint8_t* rgb, char* message, int room) {
  return guarded(message, room, [&] { static_cast<Film*>(film)->add(rgb); });
}

int lockstep_video_finish(void* film, char* message, int room) {
  return guarded(message, room, [&] { static_cast<Film*>(film)->finish(); });
}

void lockstep_video_close(void* film) { delete static_cast<Film*>(film); }
