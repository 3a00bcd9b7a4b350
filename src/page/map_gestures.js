// Gestures on the map: drag to pan, pinch and Ctrl+wheel to zoom around the pointer. Scroll bars,
// wheel and one finger scroll as everywhere else.

/** Pixels that the pointer moves before a press becomes a drag. */
const DRAG_DISTANCE = 5;

/**
 * @typedef {object} Target
 * @property {(factor: number, x: number, y: number) => void} zoomBy zooms around a point of the
 *   window
 * @property {(event: PointerEvent) => void} press called for a click or a tap
 * @property {(event: PointerEvent | null) => void} hover called when the pointer moves or leaves
 */

/** @param {HTMLElement} canvas the element that scrolls @param {Target} target */
export function followGestures(canvas, { zoomBy, press, hover }) {
  /** @type {{ x: number, y: number, left: number, top: number, isDrag: boolean } | null} */
  let held = null;
  canvas.addEventListener("pointerdown", (event) => {
    const isControl = event.target instanceof Element && event.target.closest("button, a");
    if (isControl || event.button !== 0 || event.target === canvas) return;
    const { scrollLeft: left, scrollTop: top } = canvas;
    held = { x: event.clientX, y: event.clientY, left, top, isDrag: false };
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!held) return hover(event);
    const [x, y] = [event.clientX - held.x, event.clientY - held.y];
    if (!held.isDrag && Math.hypot(x, y) < DRAG_DISTANCE) return;
    if (event.pointerType !== "mouse") return;
    if (!held.isDrag) {
      held.isDrag = true;
      hover(null);
      canvas.classList.add("dragged");
      canvas.setPointerCapture(event.pointerId);
    }
    canvas.scrollTo(held.left - x, held.top - y);
  });
  const release = () => {
    held = null;
    canvas.classList.remove("dragged");
  };
  canvas.addEventListener("pointerup", (event) => {
    const isPress =
      held && Math.hypot(event.clientX - held.x, event.clientY - held.y) < 2 * DRAG_DISTANCE;
    if (isPress && !held?.isDrag) press(event);
    release();
  });
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => hover(null));

  canvas.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      // Wheels report lines or large steps, touchpads small ones.
      const steps = event.deltaMode === 1 ? event.deltaY * 16 : event.deltaY;
      zoomBy(Math.exp(-Math.max(-60, Math.min(60, steps)) / 150), event.clientX, event.clientY);
    },
    { passive: false },
  );

  /** Distance and centre of two fingers. @param {TouchList} fingers */
  const pinch = ([a, b]) => ({
    distance: Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY) || 1,
    x: (a.clientX + b.clientX) / 2,
    y: (a.clientY + b.clientY) / 2,
  });
  /** @type {ReturnType<typeof pinch> | null} */
  let last = null;
  const onTouch = (/** @type {TouchEvent} */ event) => {
    if (event.touches.length !== 2) return void (last = null);
    held = null;
    if (event.cancelable) event.preventDefault();
    const now = pinch(event.touches);
    if (last) {
      canvas.scrollBy(last.x - now.x, last.y - now.y);
      zoomBy(now.distance / last.distance, now.x, now.y);
    }
    last = now;
  };
  for (const type of /** @type {const} */ (["touchstart", "touchmove"]))
    canvas.addEventListener(type, onTouch, { passive: false });
  for (const type of /** @type {const} */ (["touchend", "touchcancel"]))
    canvas.addEventListener(type, () => (last = null));
}
