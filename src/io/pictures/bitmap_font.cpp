// A 5 × 7 pixel face for the labels of pictures.
#include <algorithm>
#include <array>
#include <string_view>

#include "io/pictures/map_picture.hpp"

namespace lockstep::io {
namespace {

struct Glyph {
  char32_t code;
  std::string_view rows;  // Seven rows from the top, each five pixels as one base-32 digit (0-9, a-v).
};

constexpr Glyph kGlyphs[] = {
    {U'0', "ehjlphe"}, {U'1', "4c4444e"},  {U'2', "eh1248v"}, {U'3', "v2421he"}, {U'4', "26aiv22"},
    {U'5', "vgu11he"}, {U'6', "68guhhe"},  {U'7', "v124888"}, {U'8', "ehhehhe"}, {U'9', "ehhf12c"},
    {U'A', "ehhvhhh"}, {U'B', "uhhuhhu"},  {U'C', "ehggghe"}, {U'D', "sihhhis"}, {U'E', "vgguggv"},
    {U'F', "vgguggg"}, {U'G', "ehgnhhf"},  {U'H', "hhhvhhh"}, {U'I', "e44444e"}, {U'J', "72222ic"},
    {U'K', "hikokih"}, {U'L', "ggggggv"},  {U'M', "hrllhhh"}, {U'N', "hhpljhh"}, {U'O', "ehhhhhe"},
    {U'P', "uhhuggg"}, {U'Q', "ehhhlid"},  {U'R', "uhhukih"}, {U'S', "fgge11u"}, {U'T', "v444444"},
    {U'U', "hhhhhhe"}, {U'V', "hhhhha4"},  {U'W', "hhhllla"}, {U'X', "hha4ahh"}, {U'Y', "hhha444"},
    {U'Z', "v1248gv"}, {U'a', "00e1fhf"},  {U'b', "ggmphhu"}, {U'c', "00egghe"}, {U'd', "11djhhf"},
    {U'e', "00ehvge"}, {U'f', "698s888"},  {U'g', "00fhf1e"}, {U'h', "ggmphhh"}, {U'i', "40c444e"},
    {U'j', "20622ic"}, {U'k', "ggikoki"},  {U'l', "c44444e"}, {U'm', "00qllhh"}, {U'n', "00mphhh"},
    {U'o', "00ehhhe"}, {U'p', "00uhugg"},  {U'q', "00djf11"}, {U'r', "00mpggg"}, {U's', "00fge1u"},
    {U't', "88s8896"}, {U'u', "00hhhjd"},  {U'v', "00hhha4"}, {U'w', "00hhlla"}, {U'x', "00ha4ah"},
    {U'y', "00hhf1e"}, {U'z', "00v248v"},  {U'.', "00000cc"}, {U',', "0000c48"}, {U':', "0cc0cc0"},
    {U'-', "000e000"}, {U'–', "000v000"},  {U'+', "044v440"}, {U'/', "01248g0"}, {U'(', "2488842"},
    {U')', "8422248"}, {U'%', "op248j3"},  {U'=', "00v0v00"}, {U'_', "000000v"}, {U'<', "248g842"},
    {U'>', "8421248"}, {U'\'', "4480000"}, {U'°', "ciic000"}, {U'²', "c248e00"}, {U'µ', "00hhhug"},
    {U'×', "0ha4ah0"}, {U'&', "cik8lid"},  {U'!', "4444404"}, {U'?', "eh12404"}, {U'*', "0level0"},
    {U'#', "aavavaa"}, {U'"', "aa00000"},  {U'[', "e88888e"}, {U']', "e22222e"},
};

unsigned digit(char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); }

// The next character; a malformed byte counts as one unknown character.
char32_t next_code(std::string_view text, size_t& at) {
  const auto byte = static_cast<unsigned char>(text[at++]);
  const int more = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : byte >= 0xc0 ? 1 : 0;
  char32_t code = more == 3 ? byte & 7u : more == 2 ? byte & 15u : more == 1 ? byte & 31u : byte;
  for (int k = 0; k < more && at < text.size(); ++k)
    code = code << 6 | (static_cast<unsigned char>(text[at++]) & 63u);
  return code;
}

constexpr int kAdvance = 6;

}  // namespace

int text_width(const std::string& text, int scale) {
  int characters = 0;
  for (size_t at = 0; at < text.size(); ++characters) next_code(text, at);
  return characters > 0 ? (characters * kAdvance - 1) * scale : 0;
}

int draw_text(Image& image, int x, int y, const std::string& text, const Rgb& ink, int scale) {
  int left = x;
  for (size_t at = 0; at < text.size(); left += kAdvance * scale) {
    const char32_t code = next_code(text, at);
    for (const Glyph& glyph : kGlyphs) {
      if (glyph.code != code) continue;
      for (int row = 0; row < 7; ++row) {
        for (int col = 0; col < 5; ++col) {
          if (!(digit(glyph.rows[static_cast<size_t>(row)]) >> (4 - col) & 1)) continue;
          for (int v = 0; v < scale; ++v) {
            for (int u = 0; u < scale; ++u) {
              const int px = left + col * scale + u, py = y + row * scale + v;
              if (px < 0 || py < 0 || px >= image.width || py >= image.height) continue;
              for (int c = 0; c < std::min(image.channels, 3); ++c)
                image.at(px, py)[c] = ink[static_cast<size_t>(c)];
            }
          }
        }
      }
    }
  }
  return text_width(text, scale);
}

}  // namespace lockstep::io
