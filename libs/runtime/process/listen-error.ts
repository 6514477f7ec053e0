import { StartError } from '#libs/runtime/errors.js'

/** The variables that set a server's address. */
export interface ListenSettings {
  host: string
  port: string
}

/** The host is not an address of this machine, or can't be resolved. */
const NO_HOST = new Set([
  'EADDRNOTAVAIL',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EAI_FAIL',
  'EAFNOSUPPORT',
  'EINVAL',
  'ENODEV',
])

/** Turns an error of `listen` into one that names the variable to change; other errors are returned unchanged. */
export function listenError(error: unknown, { host, port }: ListenSettings): Error {
  if (!(error instanceof Error)) return new Error(String(error))
  if (!('code' in error) || typeof error.code !== 'string') return error
  const address = 'address' in error ? String(error.address) : ''
  const number = 'port' in error ? String(error.port) : ''
  const because = { cause: error }
  if (error.code === 'EADDRINUSE') {
    return new StartError(`port ${number} of ${address} is in use; set ${port} to a free one`, because)
  }
  if (error.code === 'EACCES') {
    return new StartError(
      `this user may not open port ${number} of ${address}; set ${port} to 1024 or above`,
      because,
    )
  }
  if (!NO_HOST.has(error.code)) return error
  return new StartError(`${host} is not an address of this machine: ${error.message}`, because)
}
