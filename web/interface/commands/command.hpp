// Commands of the program on a page, by the names of lockstep.options: options and files in, the document and files out.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "../options.hpp"
#include "../page_context.hpp"
#include "core/platform/web/memory_files.hpp"

namespace lockstep::web {

/// The files of one call: those of the member `files`, handles by names, and what the call writes.
class CallFiles {
 public:
  explicit CallFiles(const Json& request);
  ~CallFiles();
  CallFiles(const CallFiles&) = delete;
  CallFiles& operator=(const CallFiles&) = delete;
  /// Handles of the written files by name.
  Json written() const;

 private:
  std::map<std::string, Array> given_;
  platform::MemoryFiles files_;
};

/// All commands with their options, in the order of adding.
std::vector<NamedSchema>& commands();

/// work(context, options) gives a result with a document; `name` is "solve.fit".
template <class Options, class Work>
void add_command(Calls& calls, const char* name, Work work) {
  commands().push_back({name, &schema_of<Options>()});
  calls[name] = [where = std::string("lockstep.") + name, work](const Json& request) {
    const CallFiles files(request);
    PageContext context(request);
    Json answer = with_options<Options>(request, where.c_str(),
                                        [&](Options& o) { return Json(document_of(work(*context, o))); });
    answer["files"] = files.written();
    answer.update(context.status());
    return answer;
  };
}

}  // namespace lockstep::web
