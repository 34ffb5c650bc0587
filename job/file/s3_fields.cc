// spec.snapshots.s3 of the table of fields.
#include "job/file/field_builder.h"
#include "store/names/place.h"

namespace muster::job_file {

void AddS3Fields(std::vector<Field>* fields) {
  const std::string in = "spec.snapshots.s3.";
  constexpr OnResume kAny = OnResume::kMayChange;
  const auto option = [](auto S3Options::* member) { return Job(&JobSpec::s3, member); };
  fields->push_back(
      Default(Make(in + "endpoint", Form::kText, {}, kAny, option(&S3Options::endpoint),
                   "Address of the S3 service, such as `https://s3.example.org`."),
              "`AWS_ENDPOINT_URL`, or AWS"));
  fields->push_back(Default(Make(in + "region", Form::kText, {}, kAny, option(&S3Options::region),
                                 "Region of the bucket."),
                            "`AWS_REGION`, or us-east-1"));
  fields->push_back(Make(in + "pathStyle", Form::kBool, {}, kAny, option(&S3Options::path_style),
                         "True if the service has the bucket in the path and not in the host's "
                         "name, as MinIO does."));
  fields->push_back(Default(
      Make(in + "credentialsFile", Form::kPath, {}, kAny, option(&S3Options::credentials_file),
           "File with the credentials, in AWS's format, section `[default]`. It is read "
           "again when it changes."),
      "`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`"));
  fields->push_back(Default(Make(in + "caFile", Form::kPath, {}, kAny, option(&S3Options::ca_file),
                                 "File with the certificates that the service is checked with."),
                            "the system's"));
}

}  // namespace muster::job_file
