// Readers of files allocate no more than their budget, regardless of the contents. All of operator new is counted.
#include <gtest/gtest.h>
#include <malloc.h>
#include <zlib.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>

#include "core/temporary_folder.hpp"
#include "io/arrays/frames.hpp"
#include "io/arrays/idx.hpp"
#include "io/arrays/mat5.hpp"
#include "io/arrays/netcdf_arrays.hpp"
#include "io/arrays/safetensors.hpp"
#include "io/checks.hpp"
#include "io/meshes/mesh.hpp"
#include "io/problems/bal.hpp"
#include "io/problems/g2o.hpp"
#include "io/rasters/raster.hpp"
#include "io/series/csv.hpp"
#include "io/series/logs/training_log.hpp"
#include "io/series/weather/weather.hpp"
#include "io/text/file.hpp"
#include "io/text/input_memory.hpp"
#include "io/text/json_text.hpp"
#include "io/text/toml.hpp"
#include "io/text/unpack.hpp"

namespace {

std::atomic<size_t> live{0}, peak{0};

void* counted(size_t bytes, size_t alignment) {
  void* const memory = alignment > alignof(std::max_align_t)
                           ? std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment)
                           : std::malloc(bytes);
  if (!memory) throw std::bad_alloc();
  const size_t now = live += ::malloc_usable_size(memory);
  for (size_t before = peak; now > before && !peak.compare_exchange_weak(before, now);) {}
  return memory;
}
void release(void* memory) {
  if (memory) live -= ::malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(size_t bytes) { return counted(bytes, 0); }
void* operator new[](size_t bytes) { return counted(bytes, 0); }
void* operator new(size_t bytes, std::align_val_t alignment) { return counted(bytes, size_t(alignment)); }
void* operator new[](size_t bytes, std::align_val_t alignment) { return counted(bytes, size_t(alignment)); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, size_t) noexcept { release(memory); }
void operator delete[](void* memory, size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { release(memory); }

namespace {

using namespace lockstep;
using namespace lockstep::io;
using namespace lockstep::test;

constexpr size_t kMiB = size_t{1} << 20, kBudget = 24 * kMiB,
                 kOwn = kMiB;  // kOwn: small things that nobody claims

std::string repeated(const std::string& row, size_t bytes) {
  std::string text;
  text.reserve(bytes + row.size());
  while (text.size() < bytes) text += row;
  return text;
}
std::string numbered(const std::function<std::string(int)>& row, size_t bytes) {
  std::string text;
  for (int k = 0; text.size() < bytes; ++k) text += row(k);
  return text;
}
std::string packed(const std::string& text, int window) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = uInt(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = uInt(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}
template <class T>
std::string raw(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

struct Hostile {
  const char* name;
  const char* file;
  std::string (*content)(size_t bytes);
  void (*read)(const std::filesystem::path&);
};

const std::string kPly = "ply\nformat binary_little_endian 1.0\n";

template <auto Reader>
void reads(const std::filesystem::path& path) {
  Reader(path);
}
void reads_json(const std::filesystem::path& path) {
  within_memory(path.string(), [&] { return JsonValue::parse(read_text_file(path), path.string()); });
}
void reads_packed(const std::filesystem::path& path) {
  within_memory(path.string(), [&] { return unpack_text(read_text_file(path), path.string()).size(); });
}
void reads_npy(const std::filesystem::path& path) { read_npy(path); }
void reads_tensors(const std::filesystem::path& path) { read_safetensors(path); }

const Hostile kHostile[] = {
    {"csv", "a.csv", [](size_t n) { return repeated("1,1\n", n); }, reads<read_csv>},
    {"csv_one_column", "a.csv", [](size_t n) { return repeated("1\n", n); }, reads<read_csv>},
    {"csv_one_line", "a.csv", [](size_t n) { return repeated("1,", n); }, reads<read_csv>},
    {"csv_names", "a.csv",
     [](size_t n) { return numbered([](int k) { return "n" + std::to_string(k) + ","; }, n); },
     reads<read_csv>},
    {"log_csv", "a.csv",
     [](size_t n) { return "step,l\n" + numbered([](int k) { return std::to_string(k) + ",1\n"; }, n); },
     reads<read_training_log>},
    {"log_json", "a.jsonl",
     [](size_t n) {
       return numbered([](int k) { return "{\"step\":" + std::to_string(k) + ",\"l\":1}\n"; }, n);
     },
     reads<read_training_log>},
    {"log_json_one_line", "a.jsonl",
     [](size_t n) {
       return "{\"step\":1" + numbered([](int k) { return ",\"" + std::to_string(k) + "\":1"; }, n) + "}";
     },
     reads<read_training_log>},
    {"weather_csv", "a.csv",
     [](size_t n) { return "time,Ta,RH,wind,Kglobal\n" + repeated("2015-06-21T10:00,1,1,1,1\n", n); },
     reads<read_weather>},
    {"weather_one_line", "a.csv", [](size_t n) { return "time,Ta" + repeated(",", n); }, reads<read_weather>},
    {"json_lists", "a.json", [](size_t n) { return "[" + repeated("[],", n) + "1]"; }, reads_json},
    {"json_objects", "a.json", [](size_t n) { return "[" + repeated("{},", n) + "1]"; }, reads_json},
    {"json_strings", "a.json", [](size_t n) { return "[" + repeated("\"\",", n) + "1]"; }, reads_json},
    {"json_names", "a.json",
     [](size_t n) {
       return "{" + numbered([](int k) { return "\"" + std::to_string(k) + "\":[],"; }, n) + "\"\":1}";
     },
     reads_json},
    {"toml_numbers", "a.toml", [](size_t n) { return "a = [" + repeated("1,", n) + "]"; }, reads<read_toml>},
    {"toml_tables", "a.toml", [](size_t n) { return repeated("[[a]]\n", n); }, reads<read_toml>},
    {"toml_keys", "a.toml",
     [](size_t n) { return numbered([](int k) { return "a" + std::to_string(k) + "=1\n"; }, n); },
     reads<read_toml>},
    {"obj", "a.obj", [](size_t n) { return repeated("v 0 0 0\n", n); }, reads<read_mesh>},
    {"obj_fans", "a.obj",
     [](size_t n) {
       std::string text = repeated("v 0 0 0\n", n / 2) + "f";
       for (size_t k = 1; 8 * k < n / 2; ++k) text += " " + std::to_string(k);
       return text;
     },
     reads<read_mesh>},
    {"obj_faces_first", "a.obj", [](size_t n) { return repeated("f 1 2 3\n", n) + "v 0 0 0\n"; },
     reads<read_mesh>},
    {"ply_bytes", "a.ply",
     [](size_t n) {
       return kPly + "element vertex " + std::to_string(n) +
              "\nproperty char x\nproperty char y\nproperty char z\nend_header\n" + std::string(3 * n, '\1');
     },
     reads<read_mesh>},
    {"ply_lists", "a.ply",
     [](size_t n) {
       return kPly + "element vertex 4\nproperty char x\nproperty char y\nproperty char z\nelement face " +
              std::to_string(n / 5) + "\nproperty list uchar uchar vertex_indices\nend_header\n" +
              std::string(12, '\1') + repeated(std::string("\4\0\1\2\3", 5), n / 5 * 5);
     },
     reads<read_mesh>},
    {"ply_properties", "a.ply",
     [](size_t n) {
       return kPly + "element vertex 1\n" +
              numbered([](int k) { return "property char p" + std::to_string(k) + "\n"; }, n) +
              "end_header\n";
     },
     reads<read_mesh>},
    {"stl", "a.stl",
     [](size_t n) {
       const auto facets = uint32_t(n / 50);
       std::string text(80, '\0');
       text += raw(facets);
       for (uint32_t f = 0; f < facets; ++f) {
         text.append(12, '\0');
         for (int k = 0; k < 9; ++k) text += raw(float(9 * f + uint32_t(k)));
         text.append(2, '\0');
       }
       return text;
     },
     reads<read_mesh>},
    {"g2o", "a.g2o",
     [](size_t n) {
       return numbered([](int k) { return "VERTEX_SE2 " + std::to_string(k) + " 0 0 0\n"; }, n);
     },
     reads<read_g2o>},
    {"g2o_edges", "a.g2o",
     [](size_t n) { return repeated("EDGE_SE3:QUAT 0 1 0 0 0 0 0 0 1" + repeated(" 0", 42) + "\n", n); },
     reads<read_g2o>},
    {"g2o_edges_alone", "a.g2o",
     [](size_t n) {
       return numbered(
           [](int k) {
             return "EDGE_SE2_XY " + std::to_string(2 * k) + " " + std::to_string(2 * k + 1) + " 0 0 1 0 1\n";
           },
           n);
     },
     reads<read_g2o>},
    {"g2o_fixed", "a.g2o", [](size_t n) { return "FIX" + repeated(" 1", n); }, reads<read_g2o>},
    {"bal", "a.txt",
     [](size_t n) { return "1 " + std::to_string(n / 6) + " 1\n0 0 0 0\n" + repeated("0 ", n + 100); },
     reads<read_bal>},
    {"idx", "a.idx",
     [](size_t n) {
       std::string head("\0\0\x08\1", 4);
       for (int shift = 24; shift >= 0; shift -= 8) head += char(n >> shift & 255);
       return head + std::string(n, '\1');
     },
     reads<read_idx>},
    {"gzip", "a.gz", [](size_t n) { return packed(repeated("0 1 2 3 4 5 6 7 8 9\n", 16 * n), 31); },
     reads_packed},
    {"mat", "a.mat",
     [](size_t n) {
       std::string head = "MATLAB 5.0";
       head.resize(124, ' ');
       head += std::string("\0\1IM", 4);
       const auto side = uint32_t(n);
       std::string matrix = raw(uint32_t(6)) + raw(uint32_t(8)) + raw(uint32_t(6)) + raw(uint32_t(0)) +
                            raw(uint32_t(5)) + raw(uint32_t(8)) + raw(side) + raw(uint32_t(1)) +
                            raw(uint32_t(1)) + raw(uint32_t(1)) + std::string("x\0\0\0\0\0\0\0", 8) +
                            raw(uint32_t(2)) + raw(side) + std::string(n, '\1');
       matrix = raw(uint32_t(14)) + raw(uint32_t(matrix.size())) + matrix;
       const std::string small = packed(matrix, 15);
       return head + raw(uint32_t(15)) + raw(uint32_t(small.size())) + small;
     },
     reads<read_mat5>},
    {"npy", "a.npy",
     [](size_t n) {
       const auto bytes = encode_npy(Array::of(std::vector<uint8_t>(n)));
       return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
     },
     reads_npy},
    {"safetensors_names", "a.safetensors",
     [](size_t n) {
       const std::string header = "{" +
                                  numbered(
                                      [](int k) {
                                        return "\"" + std::to_string(k) +
                                               "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},";
                                      },
                                      n) +
                                  "\"z\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}";
       return raw(uint64_t(header.size())) + header;
     },
     reads_tensors},
};

class Memory : public testing::TestWithParam<Hostile> {
 protected:
  void TearDown() override { set_input_memory(0); }
};

// Files from a fortieth of the budget to one that the budget does not hold: each is read or refused within it.
TEST_P(Memory, ReadersStayWithinTheirBudget) {
  const Hostile& hostile = GetParam();
  TemporaryFolder folder;
  bool refused = false;
  for (const size_t part : {40, 12, 4, 2, 1}) {
    write_text(folder / hostile.file, hostile.content(kBudget / part));
    set_input_memory(kBudget);
    const size_t before = live;
    peak = before;
    try {
      hostile.read(folder / hostile.file);
    } catch (const InputError& error) {
      refused |= has(error.what(), "MiB of memory") || has(error.what(), "MiB for all that is read");
      EXPECT_TRUE(has(error.what(), hostile.file)) << error.what();
      EXPECT_FALSE(has(error.what(), "more memory than is available")) << error.what();
    }
    EXPECT_LE(peak - before, kBudget + kOwn) << "a file of " << kBudget / part << " bytes";
  }
  // Lines, columns and properties have limits of their own.
  const std::string_view name = hostile.name;
  EXPECT_TRUE(refused || name.ends_with("one_line") || name.ends_with("names") || name == "ply_properties");
}

INSTANTIATE_TEST_SUITE_P(Formats, Memory, testing::ValuesIn(kHostile),
                         [](const auto& one) { return std::string(one.param.name); });

// ---- Parts of files larger than the budget ----

class Parts : public testing::Test {
 protected:
  void TearDown() override { set_input_memory(0); }
  TemporaryFolder folder;
  static constexpr int64_t kFrames = 12, kFrame = 1 << 20;  // 4 MiB each, twice the budget in all
  Array run() const {
    Array all(Storage::f32, {kFrames, 1024, 1024});
    const auto values = all.mutate<float>();
    for (size_t k = 0; k < values.size(); ++k) values[k] = float(k / size_t(kFrame)) + float(k % 7) / 8;
    return all;
  }
  template <class Read>
  void expect_within_budget(const Read& read) {
    set_input_memory(kBudget);
    const size_t before = live;
    peak = before;
    read();
    EXPECT_LE(peak - before, kBudget + kOwn);
  }
  void expect_frames(const std::filesystem::path& path) {
    expect_within_budget([&] {
      const FrameFile file(path, "omega");
      EXPECT_EQ(file.shape(), (Sizes{kFrames, 1024, 1024}));
      for (const int64_t number : {int64_t{11}, int64_t{0}, int64_t{5}}) {
        const Array frame = file.frame(number);
        EXPECT_EQ(frame.shape(), (Sizes{1024, 1024}));
        const Array values = frame.to(Storage::f32);
        EXPECT_EQ(values.as<float>()[13], float(number) + float((size_t(number * kFrame) + 13) % 7) / 8);
      }
      EXPECT_TRUE(has(error_of([&] { file.frame(12); }), "no frame 12"));
    });
  }
};

TEST_F(Parts, FramesOfAnArray) {
  write_npy(folder / "a.npy", run());
  expect_frames(folder / "a.npy");
}

TEST_F(Parts, FramesOfAnArchive) {
  write_npz(folder / "a.npz", {{"other", run()}, {"omega", run()}});
  expect_frames(folder / "a.npz");
  std::string text = read_text(folder / "a.npz");
  text[text.size() / 2 + 4 * size_t(kFrame)] ^= 1;  // in a frame that nobody requests
  write_text(folder / "a.npz", text);
  EXPECT_TRUE(has(error_of([&] { FrameFile(folder / "a.npz", "omega"); }), "wrong checksum"));
}

TEST_F(Parts, FramesOfNetcdf) {
  if (const std::string reason = netcdf_missing(); !reason.empty()) GTEST_SKIP() << reason;
  write_netcdf(folder / "a.nc", {{"omega", {"time", "y", "x"}, run(), {}}}, {});
  expect_frames(folder / "a.nc");
}

// Files that cannot be read by frames are held as a whole, and refused where they do not fit.
TEST_F(Parts, OtherOrdersAreHeld) {
  const Array small = Array::of(std::vector<float>{0, 1, 2, 3, 4, 5}, {3, 2});
  write_npy(folder / "f.npy", small, {.fortran_order = true});
  write_npy(folder / "b.npy", small, {.big_endian = true});
  write_npz(folder / "d.npz", {{"omega", small}}, NpzCompression::deflated);
  for (const char* name : {"f.npy", "b.npy", "d.npz"})
    EXPECT_EQ(FrameFile(folder / name, "omega").frame(1).at<float>(1), 3) << name;
  write_npy(folder / "f.npy", run(), {.fortran_order = true});
  set_input_memory(kBudget);
  EXPECT_TRUE(has(error_of([&] { FrameFile(folder / "f.npy", "omega"); }), "f.npy"));
}

TEST_F(Parts, TensorsByName) {
  const std::string head =
      R"({"large":{"dtype":"F32","shape":[3,4194304],"data_offsets":[0,50331648]},"small":{"dtype":"I32","shape":[2],"data_offsets":[50331648,50331656]}})";
  write_text(folder / "a.safetensors", raw(uint64_t(head.size())) + head + std::string(50331648, '\0') +
                                           raw(int32_t(5)) + raw(int32_t(-6)));
  expect_within_budget([&] {
    const NpzArrays arrays = read_safetensors(folder / "a.safetensors", {"small"});
    ASSERT_EQ(arrays.size(), 1u);
    EXPECT_EQ(arrays[0].second.at<int32_t>(1), -6);
    EXPECT_EQ(arrays.unread, std::vector<std::string>{"large"});
  });
  EXPECT_TRUE(has(error_of([&] { read_safetensors(folder / "a.safetensors"); }), "tensor 'large'"));
}

TEST_F(Parts, TextStaysClaimedWhileItsReaderRuns) {
  write_text(folder / "a.txt", std::string(16 * kMiB, ' '));
  set_input_memory(kBudget);
  const auto twice = [&] {
    return read_text_file(folder / "a.txt").size() + read_text_file(folder / "a.txt").size();
  };
  EXPECT_EQ(twice(), 32 * kMiB);
  EXPECT_TRUE(has(error_of([&] { within_memory("a reader", twice); }), "after 16 MiB before it"));
  EXPECT_EQ(twice(), 32 * kMiB);
}

}  // namespace
