// Drawings: letters, lines and areas are where they were put, as pixels and as SVG.
#include "io/pictures/drawing.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <tuple>

#include "core/temporary_folder.hpp"
#include "io/text/file.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::io;
using namespace lockstep::test;

constexpr Rgb kBlack = {0, 0, 0};

// Share of ink of a pixel drawn in black on white.
double ink(const Image& image, int x, int y) { return 1 - const_cast<Image&>(image).at(x, y)[0] / 255.0; }
double ink_between(const Image& image, const Box& box) {
  double sum = 0;
  for (int y = static_cast<int>(box.top); y < static_cast<int>(box.bottom); ++y)
    for (int x = static_cast<int>(box.left); x < static_cast<int>(box.right); ++x) sum += ink(image, x, y);
  return sum;
}

TEST(Text, WidthsScaleAndPairsAreKerned) {
  EXPECT_EQ(text_width("", 14), 0);
  EXPECT_NEAR(text_width("Lockstep", 28), 2 * text_width("Lockstep", 14), 0.3);
  EXPECT_LT(text_width("AV", 40), text_width("A", 40) + text_width("V", 40) - 1);
  EXPECT_NEAR(text_width("00", 40), 2 * text_width("0", 40), 1e-9);
  EXPECT_GT(text_width("mm", 14, true), text_width("mm", 14));
  for (const char* word : {"å", "Ł", "ψ", "Ж", "°", "²", "⁻", "−", "∥", "⊥", "⋯", "◎", "∂", "…", "·"})
    EXPECT_NE(text_width(word, 14), text_width("\U0001F6F8", 14)) << word << " is in the face";
}

TEST(Text, LettersHaveGreyRimsAndDescenders) {
  const auto painted = [](const char* word) {
    Drawing drawing(60, 60);
    drawing.text({10, 30}, word, {.size = 28, .ink = kBlack});
    return drawing.image();
  };
  const Image g = painted("g"), a = painted("a");
  EXPECT_GT(ink_between(g, {0, 31, 60, 60}), 10) << "below the baseline";
  EXPECT_LT(ink_between(a, {0, 31, 60, 60}), 1);
  EXPECT_GT(ink_between(a, {0, 0, 60, 31}), 60);
  int grey = 0;
  for (const uint8_t v : a.pixels) grey += v > 20 && v < 235;
  EXPECT_GT(grey, 30);
}

TEST(Text, TheBoxHoldsTheInk) {
  for (const Align align : {Align::left, Align::middle, Align::right}) {
    Drawing drawing(300, 80);
    const Box box = drawing.text({150, 40}, "Ägypten (jq)", {.size = 20, .ink = kBlack, .align = align});
    const Image image = drawing.image();
    EXPECT_GT(ink_between(image, {0, 0, 300, 80}), 200);
    const Box wide{std::floor(box.left) - 1, std::floor(box.top) - 5, std::ceil(box.right) + 1,
                   box.bottom + 2};
    EXPECT_NEAR(ink_between(image, wide), ink_between(image, {0, 0, 300, 80}), 1e-9)
        << "all but the dots of capitals";
    EXPECT_NEAR(align == Align::left    ? box.left
                : align == Align::right ? box.right
                                        : (box.left + box.right) / 2,
                150, 1e-9);
  }
}

TEST(Text, OddBytesAndPlacesAreSafe) {
  Drawing drawing(20, 10);
  drawing.text({-300, 5}, "\xff\xf0 A\xc3", {.size = 12});
  drawing.text({5, 5000}, "below", {.size = 12, .halo = true});
  drawing.text({15, 8}, "tab\tand\nline \xf0\x9f\x9b\xb8", {.size = 12, .halo = true});
  EXPECT_NO_THROW(drawing.image());
  EXPECT_GT(text_width("\U0001F6F8", 14), 4) << "unknown characters show as such";
}

TEST(Text, CutAndBroken) {
  const std::string text = "Residuals of exact solutions für alle";
  EXPECT_EQ(shortened(text, 1000, 14), text);
  const std::string cut = shortened(text, 120, 14);
  EXPECT_TRUE(cut.ends_with("…"));
  EXPECT_LE(text_width(cut, 14), 120);
  EXPECT_GT(text_width(cut, 14), 100);
  const auto lines = wrapped(text, 120, 14);
  EXPECT_GT(lines.size(), 2u);
  std::string joined;
  for (const std::string& line : lines) {
    EXPECT_LE(text_width(line, 14), 120);
    joined += (joined.empty() ? "" : " ") + line;
  }
  EXPECT_EQ(joined, text);
  EXPECT_EQ(wrapped("Donaudampfschiff", 5, 14).size(), 1u);
  EXPECT_TRUE(wrapped("", 5, 14).empty());
}

TEST(Lines, CoverTheirPixels) {
  Drawing drawing(40, 20);
  drawing.line({5, 10}, {35, 10}, {kBlack, 2});
  const Image image = drawing.image();
  for (int x = 6; x < 34; ++x) {
    EXPECT_NEAR(ink(image, x, 9), 1, 0.02) << x;
    EXPECT_NEAR(ink(image, x, 10), 1, 0.02) << x;
    EXPECT_EQ(ink(image, x, 7), 0) << x;
    EXPECT_EQ(ink(image, x, 12), 0) << x;
  }
  // A stroke has round ends: a line without length is a dot.
  Drawing dot(20, 20);
  dot.line({10, 10}, {10, 10}, {kBlack, 8});
  EXPECT_NEAR(ink_between(dot.image(), {0, 0, 20, 20}), 16 * std::numbers::pi, 1.5);
}

TEST(Lines, DashesAndLongLines) {
  Drawing dashed(130, 10);
  dashed.line({5, 5}, {125, 5}, {kBlack, 2, {10, 10}});
  const Image image = dashed.image();
  for (int k = 0; k < 6; ++k) {
    EXPECT_NEAR(ink(image, 10 + 20 * k, 5), 1, 0.02) << "dash " << k;
    if (k < 5) { EXPECT_EQ(ink(image, 20 + 20 * k, 5), 0) << "gap " << k; }
  }
  // More points than one outline of FreeType holds.
  std::vector<Point> wave;
  for (int k = 0; k <= 100'000; ++k) wave.push_back({10 + k * 0.01, 30 + 20 * std::sin(k * 1e-3)});
  Drawing drawing(1020, 60);
  drawing.polyline(wave, {kBlack, 2});
  const Image long_line = drawing.image();
  for (int x = 11; x < 1009; ++x)
    EXPECT_GT(ink_between(long_line, {double(x), 0, x + 1.0, 60}), 1.5) << "a gap at " << x;
}

TEST(Areas, CoverTheirPixels) {
  Drawing drawing(50, 50);
  drawing.rectangle({10, 20, 30, 25}, kBlack);
  drawing.circle({35, 38}, 8, kBlack);
  const Image image = drawing.image();
  EXPECT_EQ(ink_between(image, {10, 20, 30, 25}), 100);
  EXPECT_EQ(ink_between(image, {0, 0, 50, 25}), 100);
  EXPECT_NEAR(ink_between(image, {0, 26, 50, 50}), 64 * std::numbers::pi, 1);
  // Counterclockwise from the right: the first quarter is the upper right one.
  Drawing arc(50, 50);
  arc.arc({25, 25}, 20, 0, 0.5 * std::numbers::pi, {kBlack, 2});
  EXPECT_GT(ink_between(arc.image(), {26, 0, 50, 24}), 50);
  EXPECT_LT(ink_between(arc.image(), {0, 27, 50, 50}), 3);
  EXPECT_LT(ink_between(arc.image(), {0, 0, 23, 50}), 3);
}

TEST(Drawings, MoveWhole) {
  Drawing part(30, 30), whole(60, 60);
  part.line({5, 5}, {20, 5}, {kBlack, 2});
  part.circle({10, 15}, 3, kBlack);
  part.arc({20, 15}, 3, 0, 3, {kBlack});
  part.text({5, 28}, "gy", {.size = 12, .ink = kBlack});
  whole.append(part, {30, 30});
  Image moved(60, 60, 3, 255);
  part.paint(moved, {30, 30});
  EXPECT_EQ(whole.image().pixels, moved.pixels);
  EXPECT_EQ(whole.text_boxes().front().left, part.text_boxes().front().left + 30);
}

TEST(Svg, SaysTheSame) {
  Drawing drawing(100.4, 50);
  drawing.polyline({{1, 2}, {3.25, 4}, {-0.001, 6}}, {{255, 0, 16}, 1.5, {4, 2}});
  drawing.area({{0, 0}, {10, 0}, {10, 10}}, {1, 2, 3});
  drawing.circle({5, 6}, 7, std::nullopt, Pen{});
  drawing.arc({25, 25}, 20, 0, 1.5 * std::numbers::pi, {});
  drawing.text({50, 20}, "a<b & \"c\"", {.align = Align::middle, .bold = true, .halo = true});
  const std::string svg = drawing.svg();
  for (const char* part :
       {"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100.4\" height=\"50\" viewBox=\"0 0 100.4 50\"",
        "<path d=\"M1 2L3.25 4L0 6\" fill=\"none\" stroke=\"#ff0010\" stroke-width=\"1.5\"",
        "stroke-dasharray=\"4 2\"", "<path d=\"M0 0L10 0L10 10Z\" fill=\"#010203\"/>",
        "<circle cx=\"5\" cy=\"6\" r=\"7\" fill=\"none\"", "<path d=\"M45 25A20 20 0 1 0 25 45\"",
        "<text x=\"50\" y=\"20\"", "text-anchor=\"middle\"", "font-weight=\"bold\"",
        ">a&lt;b &amp; &quot;c&quot;</text>"})
    EXPECT_NE(svg.find(part), std::string::npos) << part << " in\n" << svg;
}

TEST(Svg, FilesByTheirSuffix) {
  TemporaryFolder folder;
  Drawing drawing(30, 20);
  drawing.text({2, 15}, "x");
  write_drawing(folder / "a.svg", drawing);
  write_drawing(folder / "a.png", drawing);
  EXPECT_EQ(read_text_file(folder / "a.svg"), drawing.svg());
  EXPECT_EQ(read_png(folder / "a.png").pixels, drawing.image().pixels);
}

}  // namespace
