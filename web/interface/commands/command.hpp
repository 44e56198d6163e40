// Commands of the program on a page, by the names of lockstep.options: options in, the document and the written files out.
#pragma once

#include <vector>

#include "../options.hpp"
#include "../page_context.hpp"
#include "core/platform/web/memory_files.hpp"

namespace lockstep::web {

/// The files that one call writes.
class CallFiles {
 public:
  CallFiles() { platform::memory_files() = &files_; }
  ~CallFiles() { platform::memory_files() = nullptr; }
  CallFiles(const CallFiles&) = delete;
  CallFiles& operator=(const CallFiles&) = delete;
  /// Handles by name.
  Json handles() const;

 private:
  platform::MemoryFiles files_;
};

/// All commands with their options, in the order of adding.
std::vector<NamedSchema>& commands();

/// work(context, options) gives a result with a document; `name` is "pde.study".
template <class Options, class Work>
void add_command(Calls& calls, const char* name, Work work) {
  commands().push_back({name, &schema_of<Options>()});
  calls[name] = [where = std::string("lockstep.") + name, work](const Json& request) {
    CallFiles files;
    PageContext context(request);
    Json answer = with_options<Options>(request, where.c_str(),
                                        [&](Options& o) { return Json(document_of(work(*context, o))); });
    answer["files"] = files.handles();
    answer.update(context.status());
    return answer;
  };
}

}  // namespace lockstep::web
