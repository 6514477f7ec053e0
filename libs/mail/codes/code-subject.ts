import { signInWords, strongWords, topicWords, weakWords } from './code-words.js'
import { handoverWords } from './entering-words.js'
import { appointmentWords, promotionWords, receiptWords } from './number-words.js'
import { Vocabulary } from './vocabulary.js'

const subjectWords = new Vocabulary({
  code: strongWords,
  topic: [...weakWords, ...signInWords, ...topicWords],
  promotion: promotionWords,
  appointment: appointmentWords,
})
const receipts = new Vocabulary({ receipt: receiptWords })
const handovers = new Vocabulary({ handover: handoverWords })

/** What a mail is about, by its lower-cased text. Each question is answered when it is first asked. */
export class Subject {
  private kinds: ReturnType<typeof subjectWords.kindsIn> | null = null
  private receipt: boolean | null = null
  private handover: boolean | null = null

  constructor(private readonly text: string) {}

  /** Signing in, confirming or codes at all. */
  get isAboutCodes(): boolean {
    return this.known.has('code') || this.known.has('topic')
  }

  /** Codes that everybody may use, and no others. */
  get isPromotion(): boolean {
    return this.known.has('promotion') && !this.known.has('code')
  }

  /** A meeting or a journey that has a number of its own. */
  get isAppointment(): boolean {
    return this.known.has('appointment')
  }

  /** A payment by card, whose approval has a code that nobody types. */
  get isReceipt(): boolean {
    return (this.receipt ??= receipts.isIn(this.text))
  }

  /** A parcel to be fetched or brought, or a ride. */
  get isHandover(): boolean {
    return (this.handover ??= handovers.isIn(this.text))
  }

  private get known(): ReturnType<typeof subjectWords.kindsIn> {
    return (this.kinds ??= subjectWords.kindsIn(this.text))
  }
}
