// Mutated texts of systems: each is a system or refused.
#include "io/fuzz/fuzz_files.hpp"
#include "lockstep/pde.hpp"

namespace lockstep::pde {
namespace {

using test::Bytes;

System sample() {
  System s(2);
  const Field u = s.vector("u"), t = s.field("t", 1, BoundaryConditions::parse("x=reflect_odd,y=clamp"));
  const Value nu = s.parameter("nu");
  s.residual("momentum", s.at(u, 0, 0) * 2.5 + powi(nu, 3) - s.at(t, 0, -1), 2);
  s.residual("heat", max(s.at(t, 0, 0), nu) / (nu + 1));
  const Value a = s.at(t, 0, 0), b = s.at(u, 1, 0);
  s.residual("choice",
             select((a < b && !(b < nu)) || a <= nu, sign(a) * stop_gradient(b), hypot(a, b)) + abs(nu));
  return s;
}

TEST(Fuzz, SystemText) {
  const std::string text = sample().text();
  // Leaves come first in a system that was read: its own text is then the same for ever.
  const std::string again = System::of_text(text).text();
  EXPECT_EQ(System::of_text(again).text(), again);
  const auto error = [](const std::string& changed) {
    try {
      System::of_text(changed);
    } catch (const InputError& e) { return std::string(e.what()); }
    return std::string();
  };
  EXPECT_NE(error("{\"dimensions\": 2}").find("has no member 'profiles'"), std::string::npos);
  EXPECT_NE(error("{\"dimensions\": 2, \"profiles\": [], \"nodes\": [[0, 255, 0, []]]}").find("nodes[0][1]"),
            std::string::npos);
  EXPECT_NE(error("{\"dimensions\": 2, \"profiles\": [], \"nodes\": [[9, 1, 77, []]]}").find("leaf 77"),
            std::string::npos);
  test::fuzz({test::bytes_of(text)}, [](const Bytes& bytes) {
    System::of_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()}).text();
  });
}

}  // namespace
}  // namespace lockstep::pde
