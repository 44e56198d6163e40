// The record of a run, run.json in the folder of --out or FILE.run.json: what a command did, with all that is needed to do
// it again.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace CLI {
class App;
}

namespace lockstep::cli {

/// Around a command: files that it reads and publishes count as long as this lives.
class Recording {
 public:
  explicit Recording(const CLI::App& app);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  /// After a command that wrote files. Members that the command itself put into run.json stay.
  void write() const;

 private:
  const CLI::App& app_;
  std::string earlier_;  // the command whose record this one's replaces
};
/// The device, driver, stages and times of the run, from the session's end.
void note_summary(nlohmann::ordered_json summary);

/// The commit that this program was built from, "-dirty" where files differed from it.
std::string program_commit();

/// The record of a folder of results or of a file; one is its own.
std::filesystem::path record_of(const std::filesystem::path& results);
/// Throws InputError where there is none, and for a record that was edited or is of a newer version.
nlohmann::ordered_json read_record(const std::filesystem::path& file);
/// The command that wrote a record; empty where the file is absent or is no record.
std::string command_in(const std::filesystem::path& record);

/// A text of a record that may be a name of a file: where it is not UTF-8, NAME_base64 has its bytes.
void put_text(nlohmann::ordered_json& object, const std::string& name, const std::string& text);
std::string text_of(const nlohmann::ordered_json& object, const std::string& name);

/// The SHA-256 of a record without its member `seal`.
std::string seal_of(nlohmann::ordered_json record);

}  // namespace lockstep::cli
