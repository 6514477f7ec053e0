import { StartError } from '#libs/runtime/errors.js'

/** The variables that say where a server listens. */
export interface ListenSettings {
  host: string
  port: string
}

/** A host that this machine does not have, or a name that leads nowhere. */
const NO_HOST = new Set([
  'EADDRNOTAVAIL',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EAI_FAIL',
  'EAFNOSUPPORT',
  'EINVAL',
  'ENODEV',
])

/** Why a server can't listen, with the variable to look at; any other error as it is. */
export function listenError(error: unknown, { host, port }: ListenSettings): Error {
  if (!(error instanceof Error)) return new Error(String(error))
  if (!('code' in error) || typeof error.code !== 'string') return error
  const address = 'address' in error ? String(error.address) : ''
  const number = 'port' in error ? String(error.port) : ''
  const because = { cause: error }
  if (error.code === 'EADDRINUSE') {
    return new StartError(`port ${number} of ${address} is taken; set ${port} to a free one`, because)
  }
  if (error.code === 'EACCES') {
    return new StartError(
      `port ${number} of ${address} may not be opened by this user; set ${port} to 1024 or above`,
      because,
    )
  }
  if (!NO_HOST.has(error.code)) return error
  return new StartError(
    `${host} is no address of this machine that can be listened on: ${error.message}`,
    because,
  )
}
