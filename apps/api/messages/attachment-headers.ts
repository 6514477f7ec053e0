import { create as contentDisposition } from 'content-disposition'
import { safeFileName } from './file-name.js'

/**
 * What an attachment goes out with: it is saved, never shown, since what a sender made must not run in anybody's
 * browser. The name is in both forms of RFC 6266 where it goes beyond ASCII. `mediaType` is what `servedType` gave.
 */
export function attachmentHeaders(filename: string | null, mediaType: string): Record<string, string> {
  return {
    'content-type': mediaType,
    'content-disposition': contentDisposition(safeFileName(filename)),
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
  }
}
