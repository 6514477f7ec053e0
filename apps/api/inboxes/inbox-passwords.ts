import { timingSafeEqual } from 'node:crypto'
import { Injectable } from '@nestjs/common'
import { hashSecret } from '../access/credentials.js'
import { Problem } from '../http/problems.js'

export const PASSWORD_HEADER = 'Mayfly-Inbox-Password'

/** Judges what requests give as the password of a protected inbox. */
@Injectable()
export class InboxPasswords {
  /** `digest` is the hex SHA-256 of the right one. Throws a 403 for any other, and for none. */
  check(given: string | null, digest: string): void {
    if (given === null || given === '') {
      const detail = `The inbox has a password, and the request has no header ${PASSWORD_HEADER}.`
      throw new Problem('inbox-password-required', { detail })
    }
    if (timingSafeEqual(Buffer.from(hashSecret(given)), Buffer.from(digest))) return
    throw new Problem('inbox-password-invalid', {
      detail: `What ${PASSWORD_HEADER} says is not its password.`,
    })
  }
}
