import { words } from './vocabulary.js'

/** Words of mails with codes for everybody, such as discounts, referrals and Wi-Fi passwords. */
export const PROMOTION_WORDS = words(`
  % off, %off, _off with code, discount, coupon, ^promo, voucher, gift card, gift code, presale, pre-sale,
  for a free, redeem, reward code, offer code, at checkout, gutschein, rabat, aktionscode, réduction, ^remise,
  code avantage, descuento, cupón, promocional, desconto, cupom, ^sconto, promozional, korting, kortings,
  actiecode, alennus, etukoodi, ^slev, ^zľav, zniżk, promocyjn, kedvezmény, promóci, kampanj, kampagne, kupon,
  reducere, ^referral, refer a friend, invite friends, invite your friends, invite a friend, freunde werben,
  freunde einladen, parrain, invita a tus amigos, invita a un amigo, convide amigos, indique um amigo,
  invita un amico, invita i tuoi amici, nodig vrienden uit, bjud in vänner, värva, inviter venner, kutsu kaver,
  poleć znajom, zaproś znajom, doporuč, пригласи друз, приведи друг, запроси друз, arkadaşını davet, 邀请好友,
  邀請好友, 友達を招待, 友達紹介, お友だち, 친구 초대, 추천인, ^save_, ^bonus code, έκπτωσ, εκπτωτικ, προσφορ,
  profitez de, profitez d', profitez d’, aprovecha, aproveite, approfitta, profiteer van, wi-fi, wifi, wlan,
  indirim, скидк, промокод, знижк, отстъпк, popust, الخصم, خصم, قسيمة, קופון, הנחה, تخفیف, छूट, कूपन, ส่วนลด,
  giảm giá, khuyến mãi, diskon, kode promo, 优惠, 優惠, 折扣, クーポン, 割引, 쿠폰, 할인
`)

/** Words that name another kind of number, before the number. */
export const OTHER_NUMBER_WORDS = words({
  English: `
    {error|status|response|product|zip|postal|post|area|country|dialling|dialing|source|bar|qr|uni|
    item|sort|swift|bank|style|dress|campaign|store|exit|return|http|result|reason|branch|tax|invite|
    invitation|referral|friend|colour|color|customer|dealer|license|building|cost|charge|department|project|job|
    survey|vendor|supplier|course|exam|module|programme}{_code|-code|code}, ^error, ^order, code page,
    code name, codename, code of, code review, code signing, code pushed, code freeze, code base, codebase,
    invoice, receipt, ^ticket, ^case$, ^incident, ^request #, reference, ^ref$, booking, reservation,
    tracking, shipment, parcel, package, ^lot$, ^batch, ^consignment,
    {account_|acct_|card_}{number|no|id|ending|#}, ending in, ending with, ends in, ends with, customer,
    ^member, transaction, payment, ^total, ^amount, balance, ^price, ^zip$, ^phone, ^tel$, ^call$, ^fax,
    ^mobile, hotline, helpline, ^dial, ^flight, ^sku$, ^mrn$, ^npi$, ^serial, license, licence, ^version,
    ^build, copyright, ©_, p.o. box, po box, p. o. box, ^suite, ^ste$, ^apt$, ^room, ^door, ^gate$, ^seat,
    ^floor, ^port$, ^errno, ^line$, ^issue, ^release, ^rfc$, ^vat$, ^company no, ^reg. no, registered,
    registration no, ^iban, ^bic$, ^swift$, routing, ^policy, ^claim, ^permit, ^model, ^part no, ^quantity,
    ^qty$, ^mandate, meeting id, conference id, webinar id, ^meter$, ^id:, ^id#, user id,
    ^extension, ^ext., ^po #, ^txn, ^trx`,
  Products: `
    ^produkt, ^produit, ^producto, ^produto, ^prodott, ^articol, ^artículo, ^artigo, ^tuote, ^ürün, ^товар,
    ^vare, ^varu, ^termék, ^proizvod, ^izdel, προϊόν, 商品, 产品, 產品, 상품`,
  German: `
    bestell, rechnung, sendungs, vorgang, ^kunden, auftrag, ^plz$, ^blz$, telefon, kontonummer, kontonr,
    aktenzeichen, steuernummer, mandatsref, vertrag, postfach, hrb, ust-id, artikel, art.-nr, postleitzahl,
    mitglied, fehlercode, buchung, ticketnummer, zählernummer, durchwahl`,
  French: `
    commande, facture, ^colis, téléphone, ^tél, code postal, code article, code client, code erreur,
    code de suivi, siret, siren, référence, ^réf, contrat, dossier, réservation, point relais, numéro fiscal,
    numéro de compte, appelez, standard, ^billet, n° client`,
  'Spanish and Portuguese': `
    pedido, factura, fatura, teléfono, telefone, llám, código postal, código de rastreo, código de rastreio,
    código de barras, seguimiento, ^envío, reserva, contrato, referencia, referência, cuenta n, ^nif, ^cif$,
    ^c.p., ^cp_, ^cep, cnpj, ^cpf, protocolo, número de cliente, encomenda, entidade, ^rfc:, localizador,
    ^sac$, código seguro de verificación, código do produto, código de cliente, código do cliente, ^importe,
    expediente`,
  'Italian, Romanian, Catalan': `
    ^ordin, fattura, codice postale, codice fiscale, codice cliente, codice prodotto, ^cap_, spedizione,
    prenotazione, tracciamento, numero verde, telefono, p. iva, partita iva, pratica, comanda, comenzii, ^awb,
    cod poștal, factur, ^cui, rezervare, bitllet`,
  Dutch: `
    bestelling, bestelnummer, ordernummer, factuur, klantnummer, postcode, zaaknummer, telefoon, ^bel$,
    bereikbaar op, kvk, reservering, rekening, dossiernummer, track & trace, referentie`,
  Nordic: `
    beställning, ordernummer, faktura, kundnummer, kundnr, postnummer, ^ring, org.nr, org.-nr, kollinummer,
    bokning, ^ärende, ordrenummer, ^ordre, kundenr, kontonummer, ^kid, målepunkt, ^tlf, forsendelse,
    pakkenummer, sagsnummer, saksnummer, ^cvr, bestilling, sporings, tilaus, lasku, asiakasnumero, seuranta,
    postinumero, puhelin, ^soita, numeroon, y-tunnus, viitenumero, lähetys, varaus, pöntun, kennitala`,
  'Slavic in Latin letters': `
    zamówien, przesyłk, kod pocztowy, rachunek, rachunku, ^nip, ^krs, ^regon, infolini, klienta, faktur,
    rezerwac, zgłoszeni, list przewozowy, objednáv, zásil, ^psč, ^ičo, variabilní, variabilný, infolinka,
    rezervac, rezervač, rezerváci, reklamac, zákazníck, číslo účtu, faktúr, narudžb, račun, pošiljk, ^oib,
    poštanski, naročil, tellimus, pasūtījum, užsakym, pašto kod, pasta indeks, postiindeks`,
  'Hungarian, Greek, Turkish': `
    rendelés, számla, irányítószám, ügyfélszám, csomagszám, foglalás, cégjegyzék, adószám, παραγγελ, τιμολόγι,
    αποστολής, τηλ, τ.κ., κωδικός πελάτη, ^αφμ, κράτησ, ταχυδρομικός, εξυπηρέτηση, sipariş, fatura, kargo,
    takip no, posta kodu, müşteri no, mersis, rezervasyon, bilet no, ürün kodu, abone no, hizmetleri`,
  Cyrillic: `
    заказ, счет, счёт, индекс, трек, накладн, ^инн, ^огрн, телефон, лицензи, договор, бронировани, обращени,
    артикул, замовлен, рахун, ^ттн, індекс, договір, бронюванн, поръчк, фактур, товарителниц, пощенски, ^еик,
    клиентски номер, резервац, наруџб, билет`,
  'Arabic, Persian, Hebrew': `
    الطلب, طلبك, التتبع, الشحنة, الرمز البريدي, رمز بريدي, فاتورة, هاتف, اتصل, حجز, سفارش, کد پستی, کد رهگیری,
    پیگیری, فاکتور, تلفن, رزرو, مرسوله, المرجع, הזמנה, הזמנתך, משלוח, מיקוד, חשבונית, טלפון, קוד מוצר,
    שירות לקוחות, ח.פ., כרטיס`,
  'South and South-East Asian': `
    ऑर्डर, पिन कोड, ट्रैकिंग, चालान, टोल फ्री, फ़ोन, बुकिंग, पीएनआर, शिकायत, অর্ডার, คำสั่งซื้อ, พัสดุ,
    ไปรษณีย์, ใบแจ้งหนี้, โทร, หมายเลขการจอง, เลขที่, รหัสสินค้า, รหัสลูกค้า, đơn hàng, vận đơn, mã bưu,
    hóa đơn, mã sản phẩm, mã khách, giao dịch, mã tham chiếu, mã hồ sơ, mã số thuế, điện thoại, mst, tổng đài,
    đặt chỗ, mã đặt, pesanan, resi, kode pos, faktur, tagihan, telepon, hubungi, kode produk, kode booking,
    pelanggan, poskod`,
  'Chinese, Japanese, Korean': `
    订单, 訂單, 运单, 運單, 快递, 物流, 邮编, 郵編, 郵遞區號, 邮政编码, 電話, 电话, 客服, 热线, 发票, 發票, 编号, 編號, 错误代码, 錯誤代碼, 备案, 预订, 門市, 注文,
    郵便, 追跡, 問い合わせ, 問合せ, 請求, 予約, 受付番号, 会員番号, エラーコード, 伝票, お客様番号, 주문, 우편, 전화, 운송장, 송장, 고객센터, 예약, 청구, 사업자, 접수번호,
    오류 코드, 회원번호`,
})

/** Words for meetings and journeys. Their PINs and codes are not one-time codes. */
export const APPOINTMENT_WORDS = words(`
  meeting id, conference id, webinar id, join by phone, join the meeting, dial by your location,
  dial in by phone, one tap mobile, besprechungs-id, konferenz-id, id de réunion, id de la réunion,
  id de reunión, id de la reunión, id da reunião, id riunione, vergader-id, mötes-id, møde-id, møte-id,
  kokoustunnus, identyfikator spotkania, toplantı kimliği, идентификатор конференции, 会议号, 會議 id, 会议 id,
  ミーティングid, ミーティング id, 회의 id, confirmation number, itinerary, check-in, reservation confirmed,
  booking confirmed, booking number, booking reference, reservation number, boarding pass, buchungsnummer,
  reservierungsnummer, numéro de réservation, référence de réservation, número de reserva, código de reserva,
  numero di prenotazione, codice prenotazione, boekingsnummer, reserveringsnummer, bokningsnummer,
  bookingnummer, bestillingsnummer, varausnumero, numer rezerwacji, číslo rezervace, číslo rezervácie,
  foglalási szám, numărul rezervării, αριθμός κράτησης, rezervasyon numaras, номер бронирования, номер брони,
  номер бронювання, رقم الحجز, पीएनआर, หมายเลขการจอง, mã đặt chỗ, kode booking, 预订号, 預訂編號, 訂位代號,
  予約番号, 예약번호
`)

/** Words for a code that has expired or was used. */
export const EXPIRED_WORDS = words(`
  has expired, have expired, had expired, is expired, no longer valid, no longer works, has been used, was used,
  already used, is now invalid, abgelaufen, nicht mehr gültig, wurde verwendet, a expiré, n'est plus valable,
  n’est plus valable, ha caducado, ha expirado, ya no es válido, expirou, não é mais válido, è scaduto,
  non è più valido, is verlopen, niet meer geldig, har gått ut, har löpt ut, er udløbet, har utløpt, er utløpt,
  on vanhentunut, wygasł, stracił ważność, vypršel, vypršala, lejárt, a expirat, έληξε, süresi doldu, истёк,
  истек_, недействителен, більше не дійсний, изтекъл, انتهت صلاحية, פג תוקף, منقضی, समाप्त हो गया, หมดอายุแล้ว,
  đã hết hạn, telah kedaluwarsa, 已过期, 已過期, 已失效, 期限が切れ, 有効期限切れ, 만료되었, 만료됐
`)

/** Words on the receipt of a card payment. */
export const RECEIPT_WORDS = words(`
  ^receipt, ^merchant, ^terminal, ^visa *, ^visa ••, mastercard *, mastercard ••, ^aid:, card ending, kassenbon,
  kartenzahlung, ^beleg, ^reçu, ticket de caisse, ^recibo, ^comprobante, ^comprovante, scontrino, ricevuta,
  kassabon, kvitto, kvittering, kuitti, paragon, potwierdzenie płatności, účtenk, doklad o platb, ^чек$,
  ^квитанц, nyugta, απόδειξη, ^fiş$, dekont, إيصال, קבלה, 收据, 收據, 领収, 領収, 영수증, struk
`)

/** Words for a bank's approval of a payment. */
export const APPROVAL_WORDS = words(`
  ^auth, ^approval, ^appr, autorisierung, genehmigung, autorisation, autorización, autorização, autorizza,
  autoris, godkännande, autoryzac, autoriza, авторизац, engedély, provizyon, onay, التفويض, אישור, 授权, 授權,
  承認, 승인
`)

/** Units after an amount, as regular expressions. */
export const UNITS = words(String.raw`
  eur, euros?, usd, usdt, gbp, chf, inr, jpy, cny, rmb, brl, mxn, pln, czk, huf, sek, nok, dkk, ron, lei, bgn, лв,
  tl, rub, uah, грн, btc, eth, kr, kč, zł, ft, руб, ₽, ₺, ₴, ₪, ₫, đ, ฿, บาท, 元, 円, 원, ر\.س, ریال, تومان, درهم,
  points?, punkte, puntos, pontos, credits?, coins?, gems?, xp, miles?, stars?, users?, people, items?, members?,
  subscribers?, customers?, followers?, views?, visits?, visitors?, steps?, lines?, words?, pages?, times?, years?,
  tests?, passed, failed, events?, errors?, rows?, records?, requests?, messages?, emails?, commits?, files?,
  min(?:ute)?s?, hours?, hrs?, days?, seconds?, sec, ms, stunden, tage, minuten, heures, jours, horas, días, dias,
  ore, giorni, uhr, px, kb, mb, gb, tb, km, kg, g, lbs?, m², m2, sq, accounts?, devices?, products?, articles?, kwh,
  wh, kcal, bytes?, pcs, stück, hz
`)

/** Words directly before the id of an account or user: "account 4482913", "user gamer42". */
export const ACCOUNT_WORDS = words(`
  account, acct, konto, kontos, compte, cuenta, conta, conto, rekening, konta, účtu, účet, hesap, hesabı, аккаунта,
  аккаунту, акаунта, счета, user, username, benutzer, benutzername, utilisateur, usuario, usuário, utente,
  gebruiker, användare, bruker, bruger, player, profile, profil, workspace, tenant
`)
