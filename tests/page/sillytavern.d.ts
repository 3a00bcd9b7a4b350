// Declares the globals of SillyTavern's page that the extension uses, for the type check.

declare const SillyTavern: { getContext(): any };
declare const toastr: Record<
  "success" | "info" | "warning" | "error",
  (text: string, title?: string, options?: object) => void
>;
declare var stvc: {
  ask: (verb: string, args: Record<string, unknown>) => Promise<any>;
  open: (timeline: string, message?: number) => Promise<void>;
  state: () => Promise<{ state: string | null; write: boolean }>;
};
