/**
 * The image types that browsers show without running or loading anything, by the first bytes of a file. SVG is not one of
 * them.
 */
const SIGNATURES: readonly (readonly [type: string, start: RegExp])[] = [
  ['image/png', /^\x89PNG\r\n\x1a\n/],
  ['image/jpeg', /^\xff\xd8\xff/],
  ['image/gif', /^GIF8[79]a/],
  ['image/webp', /^RIFF[^]{4}WEBP/],
  ['image/bmp', /^BM[^]{4}\0{4}/],
]
const SIGNATURE_BYTES = 12

/**
 * The type of an image by its bytes, because senders declare wrong types, such as image/x-png or
 * application/octet-stream. Undefined if browsers don't show it, or not safely.
 */
export function imageTypeOf(content: Uint8Array): string | undefined {
  const start = String.fromCharCode(...content.subarray(0, SIGNATURE_BYTES))
  return SIGNATURES.find(([, signature]) => signature.test(start))?.[0]
}
