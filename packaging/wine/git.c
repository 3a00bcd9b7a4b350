// A git.exe for Wine that runs this machine's git. Wine cannot wait for a native process, so a shell
// writes its output and exit code to files.
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

typedef char *(CDECL *ToUnix)(LPCWSTR);
typedef WCHAR *(CDECL *ToDos)(LPCSTR);
static ToUnix to_unix;

static int is_drive(const WCHAR *at) {
    return ((at[0] >= 'A' && at[0] <= 'Z') || (at[0] >= 'a' && at[0] <= 'z')) && at[1] == ':' && (at[2] == '\\' || at[2] == '/');
}

static void utf8(FILE *out, const WCHAR *text, int length) {
    char bytes[4 * 32768];
    int count = WideCharToMultiByte(CP_UTF8, 0, text, length, bytes, sizeof bytes, NULL, NULL);
    for (int i = 0; i < count; i++) bytes[i] == '\'' ? fputs("'\\''", out) : fputc(bytes[i], out);
}

// Quotes one argument for the shell and converts a path in it, or after its first '='.
static void word(FILE *out, const WCHAR *text) {
    const WCHAR *path = text, *equals = wcschr(text, '=');
    if (!is_drive(path) && wcsncmp(path, L"\\\\?\\", 4) && equals) path = equals + 1;
    if (!wcsncmp(path, L"\\\\?\\", 4)) path += 4;
    fputc('\'', out);
    if (is_drive(path)) {
        if (path != text && equals && path > equals) utf8(out, text, equals + 1 - text);
        char *unix_path = to_unix(path);
        for (char *at = unix_path; at && *at; at++) *at == '\'' ? fputs("'\\''", out) : fputc(*at, out);
    } else {
        utf8(out, text, wcslen(text));
    }
    fputs("' ", out);
}

static void copy(const char *path, HANDLE to) {
    char bytes[65536];
    FILE *from = fopen(path, "rb");
    size_t count;
    DWORD written;
    while (from && (count = fread(bytes, 1, sizeof bytes, from)) > 0) WriteFile(to, bytes, count, &written, NULL);
    if (from) fclose(from);
}

int wmain(int argc, WCHAR **argv) {
    HMODULE kernel = GetModuleHandleA("kernel32.dll");
    to_unix = (ToUnix)(void *)GetProcAddress(kernel, "wine_get_unix_file_name");
    char folder[MAX_PATH], in[MAX_PATH + 16], out[MAX_PATH + 16], err[MAX_PATH + 16], end[MAX_PATH + 16], script[MAX_PATH + 16];
    GetTempPathA(MAX_PATH, folder);
    sprintf(folder + strlen(folder), "git-%lu-%lu", GetCurrentProcessId(), GetTickCount());
    CreateDirectoryA(folder, NULL);
    sprintf(in, "%s\\in", folder), sprintf(out, "%s\\out", folder), sprintf(err, "%s\\err", folder);
    sprintf(end, "%s\\end", folder), sprintf(script, "%s\\script", folder);

    FILE *input = fopen(in, "wb");
    HANDLE from = GetStdHandle(STD_INPUT_HANDLE);
    if (from && from != INVALID_HANDLE_VALUE && GetFileType(from) != FILE_TYPE_CHAR) {
        char bytes[65536];
        DWORD count;
        while (ReadFile(from, bytes, sizeof bytes, &count, NULL) && count) fwrite(bytes, 1, count, input);
    }
    fclose(input);

    WCHAR here[32768], wide[MAX_PATH];
    GetCurrentDirectoryW(32768, here);
    MultiByteToWideChar(CP_ACP, 0, folder, -1, wide, MAX_PATH);
    FILE *shell = fopen(script, "wb");
    fputs("here=", shell), word(shell, wide), fputs("\ncd ", shell), word(shell, here);
    // Removes Wine's own variables.
    fputs("\nunset LD_PRELOAD WINEPREFIX; export PATH=/usr/local/bin:/usr/bin:/bin HOME=\"$here\"\n", shell);
    fputs("git ", shell);
    for (int i = 1; i < argc; i++) word(shell, argv[i]);
    fputs("<\"$here/in\" >\"$here/out\" 2>\"$here/err\"\necho $? >\"$here/end.new\"; mv \"$here/end.new\" \"$here/end\"\n", shell);
    fclose(shell);

    char command[MAX_PATH + 64];
    WCHAR script_wide[MAX_PATH + 16];
    MultiByteToWideChar(CP_ACP, 0, script, -1, script_wide, MAX_PATH);
    sprintf(command, "sh %s", to_unix(script_wide));
    STARTUPINFOA start = {.cb = sizeof start};
    PROCESS_INFORMATION process;
    if (!CreateProcessA("Z:\\bin\\sh", command, NULL, NULL, FALSE, 0, NULL, "Z:\\", &start, &process)) return 127;
    FILE *ended;
    while (!(ended = fopen(end, "rb"))) Sleep(5);
    int code = 128;
    if (fscanf(ended, "%d", &code) != 1) code = 128;
    fclose(ended);
    copy(out, GetStdHandle(STD_OUTPUT_HANDLE));
    copy(err, GetStdHandle(STD_ERROR_HANDLE));
    remove(in), remove(out), remove(err), remove(end), remove(script);
    RemoveDirectoryA(folder);
    return code;
}
