/* libkiln-parquet: reads Parquet files by Arrow's C++ library, for parquet.c, which loads it when a
 * file is read. The only file that knows Arrow. No exception leaves it. */
#include <arrow/c/bridge.h>
#include <arrow/record_batch.h>
#include <arrow/util/config.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>

#include <cstdio>
#include <exception>
#include <memory>

#include "data/records/arrow.h"

struct KilnArrowFile {
    std::unique_ptr<parquet::arrow::FileReader> reader;
    std::unique_ptr<arrow::RecordBatchReader> batches;
};

namespace {

/* Call a function that returns a Status; 0, or -1 with the message of it or of an exception. */
template <class Function> int guarded(Function function, char *message, size_t size) noexcept
{
    try {
        const arrow::Status status = function();

        if (status.ok())
            return 0;
        std::snprintf(message, size, "%s", status.message().c_str());
    } catch (const std::exception &error) {
        std::snprintf(message, size, "%s", error.what());
    } catch (...) {
        std::snprintf(message, size, "an unknown error");
    }
    return -1;
}

/* Row groups are read one after the other, and their rows in blocks, so a file may be larger than
 * memory. */
parquet::ArrowReaderProperties properties()
{
    parquet::ArrowReaderProperties ret(/*use_threads=*/false);

    ret.set_pre_buffer(false);
    return ret;
}

arrow::Status open_file(const char *path, KilnArrowFile *file, ArrowSchema *ret_schema,
                        int64_t *ret_rows)
{
    parquet::arrow::FileReaderBuilder builder;
    std::shared_ptr<arrow::Schema> schema;

    ARROW_RETURN_NOT_OK(builder.OpenFile(path, /*memory_map=*/false));
    builder.properties(properties());
    ARROW_RETURN_NOT_OK(builder.Build(&file->reader));
    *ret_rows = file->reader->parquet_reader()->metadata()->num_rows();
    ARROW_RETURN_NOT_OK(file->reader->GetSchema(&schema));
    ARROW_ASSIGN_OR_RAISE(file->batches, file->reader->GetRecordBatchReader());
    return arrow::ExportSchema(*schema, ret_schema);
}

int open(const char *path, KilnArrowFile **ret, ArrowSchema *ret_schema, int64_t *ret_rows,
         char *message, size_t size)
{
    return guarded(
        [=] {
            auto file = std::make_unique<KilnArrowFile>();

            ARROW_RETURN_NOT_OK(open_file(path, file.get(), ret_schema, ret_rows));
            *ret = file.release();
            return arrow::Status::OK();
        },
        message, size);
}

int next(KilnArrowFile *file, ArrowArray *ret, char *message, size_t size)
{
    return guarded(
        [=] {
            std::shared_ptr<arrow::RecordBatch> batch;

            ret->release = nullptr;
            ARROW_RETURN_NOT_OK(file->batches->ReadNext(&batch));
            return batch != nullptr ? arrow::ExportRecordBatch(*batch, ret) : arrow::Status::OK();
        },
        message, size);
}

void close(KilnArrowFile *file)
{
    try {
        delete file;
    } catch (...) {
    }
}

} // namespace

extern "C" __attribute__((visibility("default"))) const KilnArrowLibrary kiln_arrow_library = {
    KILN_ARROW_LIBRARY, ARROW_VERSION_STRING, open, next, close
};
