// Writes text by a model that text_trainer has trained.

#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "examples/text/arguments.h"
#include "examples/text/characters.h"
#include "examples/text/model_file.h"
#include "examples/text/writer.h"

namespace {

constexpr const char* kUsage =
    R"(Usage: text_write --model FILE [--name value] ...

Continues a text with a model that text_trainer has written.

  --model FILE     the model
  --prompt TEXT    how the text begins ("The ")
  --length N       characters to add (400)
  --temperature R  below 1: likely characters even more often; above 1: less often (0.7)
  --seed N         of the choices (1)

Example:
  text_write --model model-worker-0.bin --prompt "A server " --length 200
)";

int Write(text::Arguments& arguments, std::string& error) {
  const std::string path = arguments.Text("model", "");
  const std::string prompt = arguments.Text("prompt", "The ");
  text::WriterOptions options;
  options.length = arguments.Number("length", options.length, 1, 1'000'000);
  options.temperature = arguments.Real("temperature", options.temperature, 0.01F, 10);
  options.seed = arguments.Number("seed", options.seed, 0, UINT64_MAX);
  std::vector<uint8_t> begin;
  std::optional<std::string> wrong = arguments.Error();
  if (!wrong && path.empty()) wrong = "--model is missing";
  if (!wrong && prompt.empty()) wrong = "--prompt is empty";
  if (!wrong) wrong = text::AppendNumbers(prompt, prompt.size(), begin);
  if (wrong) {
    error = *wrong + "; see text_write --help";
    return 2;
  }
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.is_open() || file.bad()) {
    error = path + " cannot be read";
    return 1;
  }
  const std::optional<text::Model> model = text::ParseModel(bytes, error);
  if (model && model->shape.characters != text::kCharacters) error = "it has another alphabet";
  if (!error.empty()) {
    error = path + ": " + error;
    return 1;
  }
  std::printf("%s%s\n", text::TextOf(begin).c_str(),
              text::TextOf(text::Continue(*model, begin, options)).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  text::Arguments arguments({argv + 1, static_cast<size_t>(argc - 1)});
  if (arguments.help()) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  std::string error;
  const int code = Write(arguments, error);
  if (code != 0) std::fprintf(stderr, "text_write: %s\n", error.c_str());
  return code;
}
