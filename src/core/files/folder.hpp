// An open folder: files made, opened or renamed through it stay in it, even if its name denotes another folder by then.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

namespace lockstep {

class Folder {
 public:
  struct Handle;

  Folder() = default;
  /// The folder of a name that the user gave: links are followed, and with `make` missing folders are made. Throws
  /// InputError.
  static Folder open(const std::filesystem::path& path, bool make = false);
  /// The folder of an output file, made if it is missing. Below an output folder (see below) no link is followed,
  /// because the author of the link would choose where it leads.
  static Folder of_output(const std::filesystem::path& file);

  explicit operator bool() const { return handle_ != nullptr; }
  const std::filesystem::path& path() const { return path_; }
  int descriptor() const;
  /// A name of this very folder, for libraries that open files by name.
  std::filesystem::path pinned() const;

  /// A folder inside. Throws InputError where a link or a file has its name.
  Folder inside(const std::filesystem::path& name, bool make) const;
  /// A new folder that only this user can enter; `name` becomes its name.
  Folder make_private(const std::string& stem, std::string& name) const;
  /// A new file, 0600, named `.STEM.PROCESS-RANDOM.part`; -1 and errno where it cannot be made.
  int make_temporary(const std::string& stem, std::string& name) const;
  /// An existing regular file that is no link, for reading; -1 and errno for any other.
  int open_regular(const std::string& name) const;
  /// Removes a file, a link, or a folder with its content; no link is followed.
  void remove(const std::string& name) const;

 private:
  friend class OutputFolders;
  friend void hold_output_folder(const Folder& folder);
  std::filesystem::path path_;
  std::shared_ptr<const Handle> handle_;
};

/// Makes a folder of outputs with missing parents; from now on Folder::of_output() follows no link below it.
void make_output_folder(const std::filesystem::path& folder);
/// The same for one that may be missing still.
void note_output_folder(const std::filesystem::path& folder);
/// Outputs use this handle as long as it lives, even if another file or folder takes the name.
void hold_output_folder(const Folder& folder);
void forget_output_folders();

/// A folder of inputs from others, as long as this lives. Its files are opened through its handle, even if another
/// file, link or folder takes the name meanwhile. Links in it are refused.
class InputFolder {
 public:
  /// Throws InputError where there is no such folder.
  explicit InputFolder(const std::filesystem::path& path);
  ~InputFolder();
  InputFolder(const InputFolder&) = delete;
  InputFolder& operator=(const InputFolder&) = delete;
  /// The name to open a file by: through the handle where it is in such a folder, else its own. Throws InputError for a
  /// link in such a folder.
  static std::filesystem::path name_of(const std::filesystem::path& file);

 private:
  Folder folder_;
  std::filesystem::path whole_;
};

/// A file without a name in the folder of `target`. It is removed with the object.
class ScratchFile {
 public:
  /// Throws InputError where it cannot be made.
  explicit ScratchFile(const std::filesystem::path& target);
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

}  // namespace lockstep
