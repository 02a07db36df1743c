/* Writes sample data: a few dozen samples of each kind, with something to learn in them. */
#include "cli/contract/sample_data.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
#include "kiln/image.h"

enum { ROWS = 96, IMAGES = 10 /* of a class and split */, SIDE = 64, DIGIT = 28, DIGITS = 120 };

static const char *const splits[] = { "train", "val", "test" };
static const char *const kinds[] = { "red", "green", "blue" };
static const char *const nouns[] = { "cat", "dog", "bird", "fish", "tree", "stone" };
static const char *const verbs[] = { "sees", "likes", "finds", "hears" };

typedef struct Writer {
    const char *folder;
    KilnStatus status; /* of the first failure */
    KilnError *err;
} Writer;

/* ---- Files ---------------------------------------------------------------------------------- */

/* The path of a formatted name in the folder, with the folders above it; owned by the caller. */
static char *path_of(Writer *writer, const char *format, ...) KILN_PRINTF(2, 3);
static char *path_of(Writer *writer, const char *format, ...)
{
    char name[256];
    va_list args;

    va_start(args, format);
    vsnprintf(name, sizeof(name), format, args);
    va_end(args);
    char *path = kiln_path_join(writer->folder, name);
    if (writer->status >= 0)
        writer->status = path == NULL ? kiln_error_nomem(writer->err, strlen(name))
                                      : kiln_dir_make_parent(path, writer->err);
    return path;
}

/* Write the text, and release it. */
static void write_text(Writer *writer, char *path, KilnText *text)
{
    if (writer->status >= 0 && text->failed)
        writer->status = kiln_error_nomem(writer->err, text->length);
    if (writer->status >= 0)
        writer->status = kiln_file_write(path, text->data, text->length, writer->err);
    kiln_text_release(text);
    free(path);
}

/* A square of brightness `shade` on grey noise; a mask has a class in each pixel instead. */
static void write_image(Writer *writer, char *path, int number, int shade, bool mask)
{
    static uint8_t pixels[SIDE * SIDE * 3]; /* in a child process */
    const int channels = mask ? 1 : 3, left = 8 + number * 3 % 24, top = 4 + number * 5 % 24;

    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            for (int c = 0; c < channels; c++) {
                const bool inside = x >= left && x < left + 24 && y >= top && y < top + 24;
                const int noise = (x * 7 + y * 13 + number * 11 + c * 5) % 32;

                pixels[(y * SIDE + x) * channels + c] = (uint8_t)(mask     ? (inside ? shade : 0)
                                                                  : inside ? shade
                                                                           : 96 + noise);
            }
    if (writer->status >= 0)
        writer->status = kiln_png_write(path, pixels, SIDE, SIDE, channels, writer->err);
    free(path);
}

/* ---- Rows and texts ---------------------------------------------------------------------------
 */

static void write_rows(Writer *writer)
{
    KilnText csv = { 0 }, svm = { 0 };

    kiln_text_append(&csv, "a,b,kind,class,y\n");
    for (int i = 0; i < ROWS; i++) {
        const double a = (double)(i % 7) / 3.0, b = (double)(i * 5 % 11) / 5.0;

        kiln_text_printf(&csv, "%.3f,%.3f,%s,%s,%.3f\n", a, b, kinds[i % 3], a > b ? "yes" : "no",
                         a - 0.5 * b + (double)(i % 3));
        kiln_text_printf(&svm, "%d 1:%.3f 2:%.3f 3:%d\n", a > b, a, b, i % 3);
    }
    write_text(writer, path_of(writer, "rows.csv"), &csv);
    write_text(writer, path_of(writer, "rows.svm"), &svm);
}

static void write_texts(Writer *writer)
{
    KilnText texts = { 0 }, topics = { 0 }, conll = { 0 }, from = { 0 }, to = { 0 }, prose = { 0 };

    kiln_text_append(&texts, "text,label\n");
    for (int i = 0; i < ROWS; i++) {
        const char *who = nouns[i % 6], *does = verbs[i / 2 % 4], *what = nouns[i * 5 / 2 % 6];
        const char *topic = i % 6 < 4 ? "animal" : "thing";

        kiln_text_printf(&texts, "the %s %s a %s,%s\n", who, does, what, topic);
        kiln_text_printf(&topics, "{\"text\": \"the %s %s a %s\", \"labels\": [\"%s\"%s]}\n", who,
                         does, what, topic, i % 4 == 0 ? ", \"sight\"" : "");
        kiln_text_printf(&conll, "the O\n%s B-WHO\n%s O\na O\n%s B-WHAT\n\n", who, does, what);
        kiln_text_printf(&from, "the %s %s a %s\n", who, does, what);
        kiln_text_printf(&to, "a %s %s the %s\n", what, does, who);
        kiln_text_printf(&prose, "The %s %s a %s, and number %d follows. ", who, does, what, i);
    }
    write_text(writer, path_of(writer, "texts.csv"), &texts);
    write_text(writer, path_of(writer, "topics.jsonl"), &topics);
    write_text(writer, path_of(writer, "words.conll"), &conll);
    write_text(writer, path_of(writer, "from.txt"), &from);
    write_text(writer, path_of(writer, "to.txt"), &to);
    write_text(writer, path_of(writer, "prose.txt"), &prose);
}

/* ---- Images ------------------------------------------------------------------------------------
 */

static void write_folders(Writer *writer)
{
    KilnText images = { 0 }, lines = { 0 };

    kiln_text_append(&images, "image,label\n");
    kiln_text_append(&lines, "image,text\n");
    for (size_t s = 0; s < KILN_COUNT(splits); s++)
        for (int i = 0; i < 2 * IMAGES; i++) {
            const char *class = i % 2 == 0 ? "a" : "b";

            write_image(writer, path_of(writer, "images/%s/%s/%d.png", splits[s], class, i), i,
                        i % 2 == 0 ? 10 : 250, false);
            write_image(writer, path_of(writer, "masks/images/%s/%d.png", splits[s], i), i,
                        i % 2 == 0 ? 10 : 250, false);
            write_image(writer, path_of(writer, "masks/masks/%s/%d.png", splits[s], i), i,
                        1 + i % 2, true);
            kiln_text_printf(&images, "images/%s/%s/%d.png,%s\n", splits[s], class, i, class);
            kiln_text_printf(&lines, "images/%s/%s/%d.png,%s\n", splits[s], class, i, nouns[i % 6]);
        }
    write_text(writer, path_of(writer, "images.csv"), &images);
    write_text(writer, path_of(writer, "lines.csv"), &lines);
}

/* The images of the folder of masks, with a box in each. */
static void write_boxes(Writer *writer)
{
    KilnText coco = { 0 }, boxes = { 0 }, yolo = { 0 };

    kiln_text_append(&coco, "{\"categories\": [{\"id\": 1, \"name\": \"dark\"}, {\"id\": 2, "
                            "\"name\": \"bright\"}], \"images\": [");
    for (int i = 0; i < 2 * IMAGES; i++) {
        const int left = 8 + i * 3 % 24, top = 4 + i * 5 % 24;
        KilnText label = { 0 };

        kiln_text_printf(&coco,
                         "%s{\"id\": %d, \"file_name\": \"%d.png\", \"width\": %d, "
                         "\"height\": %d}",
                         i > 0 ? ", " : "", i, i, SIDE, SIDE);
        kiln_text_printf(&boxes,
                         "%s{\"id\": %d, \"image_id\": %d, \"category_id\": %d, \"bbox\": "
                         "[%d, %d, 24, 24], \"area\": 576, \"iscrowd\": 0}",
                         i > 0 ? ", " : "", i, i, 1 + i % 2, left, top);
        kiln_text_printf(&label, "%d %.4f %.4f 0.375 0.375\n", i % 2, (double)(left + 12) / SIDE,
                         (double)(top + 12) / SIDE);
        write_image(writer, path_of(writer, "coco/train2017/%d.png", i), i, i % 2 == 0 ? 10 : 250,
                    false);
        write_image(writer, path_of(writer, "yolo/images/%d.png", i), i, i % 2 == 0 ? 10 : 250,
                    false);
        write_text(writer, path_of(writer, "yolo/labels/%d.txt", i), &label);
    }
    kiln_text_printf(&coco, "], \"annotations\": [%s]}\n", boxes.data != NULL ? boxes.data : "");
    kiln_text_release(&boxes);
    write_text(writer, path_of(writer, "coco/annotations/instances_train2017.json"), &coco);
    kiln_text_append(&yolo, "path: yolo\ntrain: images\nnames: [dark, bright]\n");
    write_text(writer, path_of(writer, "yolo.yaml"), &yolo);
}

/* Big-endian, as idx files have their numbers. */
static void append_u32(KilnText *text, uint32_t value)
{
    const char bytes[4] = { (char)(value >> 24), (char)(value >> 16), (char)(value >> 8),
                            (char)value };

    kiln_text_append_n(text, bytes, sizeof(bytes));
}

static void write_digits(Writer *writer, const char *split)
{
    KilnText images = { 0 }, labels = { 0 };

    append_u32(&images, 0x803);
    append_u32(&images, DIGITS);
    append_u32(&images, DIGIT);
    append_u32(&images, DIGIT);
    append_u32(&labels, 0x801);
    append_u32(&labels, DIGITS);
    for (int i = 0; i < DIGITS; i++) {
        const char label = (char)(i % 10);

        for (int k = 0; k < DIGIT * DIGIT; k++) {
            const char pixel = (char)(k / DIGIT / 3 == i % 10 ? 120 : (k * 7 + i) % 40);

            kiln_text_append_n(&images, &pixel, 1);
        }
        kiln_text_append_n(&labels, &label, 1);
    }
    write_text(writer, path_of(writer, "mnist/%s-images-idx3-ubyte", split), &images);
    write_text(writer, path_of(writer, "mnist/%s-labels-idx1-ubyte", split), &labels);
}

/* A file of a tar archive (ustar). */
static void append_member(KilnText *tar, const char *name, const void *data, size_t size)
{
    enum { BLOCK = 512, CHECKSUM = 148 };
    char head[BLOCK] = "", zeroes[BLOCK] = "";
    unsigned sum = 0;

    snprintf(head, 100, "%s", name);
    snprintf(head + 100, 8, "%07o", 0644);
    snprintf(head + 124, 12, "%011zo", size);
    memset(head + CHECKSUM, ' ', 8);
    head[156] = '0';
    memcpy(head + 257, "ustar\00000", 8);
    for (int i = 0; i < BLOCK; i++)
        sum += (unsigned char)head[i];
    snprintf(head + CHECKSUM, 8, "%06o", sum);
    kiln_text_append_n(tar, head, BLOCK);
    kiln_text_append_n(tar, data, size);
    kiln_text_append_n(tar, zeroes, (BLOCK - size % BLOCK) % BLOCK);
}

/* Images with their classes, as webdataset writes them. */
static void write_shard(Writer *writer)
{
    static uint8_t pixels[SIDE * SIDE * 3]; /* in a child process */
    static const char end[1024];
    KilnText tar = { 0 };

    for (int i = 0; i < 4 * IMAGES && writer->status >= 0; i++) {
        uint8_t *png = NULL;
        size_t size = 0;
        char name[32];

        memset(pixels, i % 2 == 0 ? 10 + i : 200 + i, sizeof(pixels));
        writer->status = kiln_png_encode(pixels, SIDE, SIDE, 3, &png, &size, writer->err);
        if (writer->status < 0)
            break;
        snprintf(name, sizeof(name), "%03d.png", i);
        append_member(&tar, name, png, size);
        snprintf(name, sizeof(name), "%03d.cls", i);
        append_member(&tar, name, i % 2 == 0 ? "0" : "1", 1);
        free(png);
    }
    kiln_text_append_n(&tar, end, sizeof(end));
    write_text(writer, path_of(writer, "shard.tar"), &tar);
}

KilnStatus kiln_sample_data_write(const char *folder, KilnError *err)
{
    Writer writer = { .folder = folder, .err = err };

    write_rows(&writer);
    write_texts(&writer);
    write_folders(&writer);
    write_boxes(&writer);
    write_digits(&writer, "train");
    write_digits(&writer, "t10k");
    write_shard(&writer);
    return writer.status;
}
