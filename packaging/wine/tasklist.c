// `tasklist /FO CSV /NH` as on Windows; Wine's prints nothing.
#include <stdio.h>
#include <windows.h>
#include <tlhelp32.h>

int main(void) {
    PROCESSENTRY32 process = {.dwSize = sizeof process};
    HANDLE all = CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0);
    for (BOOL more = Process32First(all, &process); more; more = Process32Next(all, &process))
        printf("\"%s\",\"%lu\",\"Console\",\"1\",\"1,024 K\"\r\n", process.szExeFile, process.th32ProcessID);
    return 0;
}
