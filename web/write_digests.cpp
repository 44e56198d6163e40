// Writes digests of a device's results for the cases of the pages, as JSON: {"device": …, "architecture": …, "digests": {"case
// size": digest}}.
// usage: web_digests [DEVICE]   (cpu)
#include <cstdio>
#include <nlohmann/json.hpp>

#include "lockstep/error.hpp"
#include "registry.hpp"
#include "verify/case_results.hpp"

int main(int argc, char** argv) {
  using namespace lockstep;
  try {
    if (argc > 2) throw InputError(argv[2], "web_digests", "the name of one device");
    const Device device = Device::open(argc > 1 ? argv[1] : "cpu");
    nlohmann::json digests = nlohmann::json::object();
    for (const char* folder : {"engine.", "fft.", "math.", "pde.", "primitives."})
      for (const Case* c : all_cases().match(folder))
        for (const std::string& size : c->small)
          if (const std::string digest = CaseResults(*c, size).digest(device); !digest.empty())
            digests[c->name + " " + size] = digest;
    const DeviceInfo& info = device.info();
    std::printf("%s\n",
                nlohmann::json{
                    {"device", info.description}, {"architecture", info.architecture}, {"digests", digests}}
                    .dump(0)
                    .c_str());
  } catch (const Error& error) {
    std::fprintf(stderr, "web_digests: %s\n", error.what());
    return 2;
  }
}
