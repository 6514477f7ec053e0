import { Controller, Get } from '@nestjs/common'
import Type from 'typebox'
import { RefusedMail, RefusedMailList } from '#libs/role/refused-mail.js'
import { Caller, READERS, RequireScope, type Principal } from '../access/principal.js'
import { Describe, Tag } from '../openapi/describe.js'

@Controller('v1/refused-mail')
@Tag('Messages')
export class RefusedMailController {
  constructor(private readonly refused: RefusedMailList) {}

  @Get()
  @RequireScope(...READERS)
  @Describe({
    summary: 'List refused mail',
    description:
      'The recipients that were last refused by SMTP: in the inboxes and domains of the environment, and on the embedded ' +
      'engine, for the first account, also any other address. Protected inboxes are left out. At most 100 of the account, ' +
      'about a second behind. They are kept in memory, by each process of the API on its own: the list is empty after a ' +
      'restart.',
    answer: { description: 'The refused recipients, newest first.', schema: Type.Array(RefusedMail) },
  })
  listRefusedMail(@Caller() principal: Principal) {
    return this.refused.of(principal)
  }
}
