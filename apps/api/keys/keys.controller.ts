import { Body, Controller, Delete, Get, Param, Post, Query } from '@nestjs/common'
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { AllowMembers, type Principal, Caller, RequireScope } from '../access/principal.js'
import { Reply, withLocation } from '../http/headers.js'
import { Mint, type Minting } from '../idempotency/minting.js'
import { ListPage, pageOf } from '../http/list-pages.js'
import { Describe, Tag } from '../openapi/describe.js'
import { Key, KeyWithSecret, keyJson, newKeyJson } from './key-schemas.js'
import { IssueKey, RotateKey } from './key-requests.dto.js'
import { Keys } from './keys.service.js'
import { Instance } from '../instance.js'

/** The keys of the caller's account, in all environments. */
@Controller('v1/keys')
@Tag('Keys')
@RequireScope('admin')
@AllowMembers()
export class KeysController {
  constructor(
    private readonly keys: Keys,
    private readonly instance: Instance,
  ) {}

  @Post()
  @Describe({
    summary: 'Issue a key',
    description:
      'It expires after a year, unless `expires_at` says otherwise. A member without the scope `admin` can issue and manage personal keys in the console.',
    answer: { description: 'The key, with its secret.', schema: KeyWithSecret, headers: ['Location'] },
  })
  async issueKey(
    @Caller() principal: Principal,
    @Mint() minting: Minting,
    @Body() body: IssueKey,
    @Reply() reply: FastifyReply,
  ) {
    const issued = await this.keys.issue(principal, principal.accountId, body, minting)
    return withLocation(reply, '/v1/keys', newKeyJson(issued))
  }

  @Get()
  @Describe({
    summary: 'List keys',
    answer: { description: 'A page of keys.', schema: Type.Array(Key), headers: ['Link'] },
  })
  async listKeys(@Caller() principal: Principal, @Query() query: ListPage, @Reply() reply: FastifyReply) {
    const page = await pageOf('key', query, reply, (listQuery) => this.keys.list(principal, listQuery))
    const uses = await this.keys.usesOf(principal.accountId, page)
    return page.map((key) => keyJson(key, uses(key), this.instance.now()))
  }

  @Get(':keyId')
  @Describe({ summary: 'Read a key', answer: { description: 'The key.', schema: Key } })
  async getKey(@Caller() principal: Principal, @Param('keyId') keyId: string) {
    const key = await this.keys.get(principal, keyId)
    return keyJson(key, await this.keys.useOf(key), this.instance.now())
  }

  @Post(':keyId/rotate')
  @Describe({
    summary: 'Rotate the secret of a key',
    answer: { description: 'The key, with its new secret.', schema: KeyWithSecret, headers: ['Location'] },
  })
  async rotateKey(
    @Caller() principal: Principal,
    @Mint() minting: Minting,
    @Param('keyId') keyId: string,
    @Body() body: RotateKey,
    @Reply() reply: FastifyReply,
  ) {
    const rotated = await this.keys.rotate(principal, keyId, body, minting)
    return withLocation(reply, '/v1/keys', newKeyJson(rotated))
  }

  @Delete(':keyId')
  @Describe({
    summary: 'Revoke a key',
    description: 'The key stops working on every instance within a second. A repeat gets the same answer.',
    answer: { description: 'The key.', schema: Key },
  })
  async revokeKey(@Caller() principal: Principal, @Param('keyId') keyId: string) {
    const key = await this.keys.revoke(principal, keyId)
    return keyJson(key, await this.keys.useOf(key), this.instance.now())
  }
}
