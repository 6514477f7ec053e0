import { IsBoolean, Matches } from 'class-validator'
import { FromDigits, FromTrueOrFalse, IsWholeNumber } from '../http/rules.js'
import { DescribeProperty } from '../openapi/describe.js'

const MAX_LATE_MS = 30 * 24 * 60 * 60 * 1_000

/** The query of POST /v1/runs/{label}/verify. */
export class VerifyRun {
  @DescribeProperty('The header that identifies a mail, in upper or lower case.')
  @Matches(/^[!-9;-~]{1,200}$/, { message: 'id_header must be the name of a header' })
  id_header: string = 'Message-ID'

  @DescribeProperty(
    'The milliseconds after `sent_at` within which a mail must be received. Without it, no mail is late.',
  )
  @FromDigits()
  @IsWholeNumber(0, MAX_LATE_MS)
  late_ms?: number

  @DescribeProperty('Whether the mail of each inbox must be received in the order of its lines.')
  @FromTrueOrFalse()
  @IsBoolean({ message: 'order must be true or false' })
  order: boolean = false
}
