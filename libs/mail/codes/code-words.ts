import { words } from './vocabulary.js'

/** Words that only name one-time codes. */
export const STRONG_WORDS = words({
  English: `
    verify, verification, one-time, one time, onetime, single-use, ^otp$, ^otps$, ^totp$, ^tac$, passcode,
    pass code, pass-code, ^2fa$, ^mfa$, ^pin$, ^tan$, ^mtan$, ^2sv$, two-factor, two factor, two-step, two step,
    {security|login|log-in|log in|sign-in|sign in|signin|sign-up|sign up|signup|access|authentication|
    authorization|authorisation|auth|confirmation|activation|temporary|device|pairing|recovery|reset|unlock|
    pickup|pick-up|collection|backup|approval|registration|link|guard}{_code|_pin|-code|_token},
    temporary password`,
  German: `
    einmal, verifizierung, verifikation,
    {bestätigungs|sicherheits|anmelde|zugangs|zugriffs|aktivierungs|freischalt|prüf|login|abhol|
    wiederherstellungs|authentifizierungs|freigabe|geräte|kopplungs|sms-}{code|-code|kode|nummer|pin}`,
  French: `
    vérification, usage unique, code secret, code temporaire, code sms,
    {code de_|code_}{sécurité|connexion|confirmation|validation|retrait|récupération},
    {code d'|code d’}{accès|activation|authentification|autorisation}`,
  'Spanish and Portuguese': `
    verificación, verificacion, verificação, un solo uso, uso único, clave temporal, clave dinámica,
    código temporal, código temporário, código único, clave de acceso,
    {código de_|codigo de_}{seguridad|acceso|confirmación|activación|inicio|autenticación|autorización|
    recuperación|validación|recogida|segurança|acesso|confirmação|ativação|activação|autenticação|autorização|
    validação|login|recuperação}`,
  'Italian, Romanian, Catalan': `
    monouso, codice otp, codice temporaneo, usa e getta, unică folosință, verificare, verificació,
    {codice di_|cod de_|codul de_|codul tău de_|codi de_|codi d'}{sicurezza|accesso|conferma|verifica|
    attivazione|autenticazione|autorizzazione|sblocco|ritiro|confirmare|securitate|acces|activare|autentificare|
    siguranță|conectare|confirmació|seguretat|accés|un sol ús}`,
  Dutch: `
    verificatie, eenmalig, verifikasie,
    {inlog|beveiligings|toegangs|bevestigings|activerings|activatie|aanmeld|herstel}{code|-code|kode}`,
  Nordic: `
    engångs, engangs, verifiering, verifiera, kertakäyttö, staðfestingar, öryggiskóð,
    {bekräftelse|säkerhets|inloggnings|aktiverings|åtkomst|hämt|bekræftelses|sikkerheds|login|log-ind-|
    verifikations|afhentnings|godkendelses|bekreftelses|sikkerhets|påloggings|innloggings|verifiserings|hente|
    tilgangs}kod, {vahvistus|kirjautumis|varmennus|turva|todennus|tunnistautumis|aktivointi|nouto}kood`,
  'Slavic in Latin letters': `
    weryfikac, jednorazow, autoryzacyjn, autoryzacji, uwierzytelni, potwierdzając, aktywacyjn, kod dostępu,
    kod logowania, kod do logowania, kod bezpieczeństwa, kod sms, kod odbioru, ověřovac, ověření, jednorázov,
    potvrzovac, aktivační, autorizační, bezpečnostní kód, přihlašovací kód, přístupový kód, overovac, overeni,
    potvrdzovac, aktivačn, autorizačn, bezpečnostný kód, prihlasovací kód, prístupový kód, jednokratn,
    verifikacijsk, potvrdni, sigurnosni k, kod za prijavu, enkratn, potrditven, varnostna koda, kodi i verifik,
    tasdiqlash kod`,
  'Cyrillic, and neighbours': `
    подтвержд, проверочн, одноразов, верификац, підтвердж, перевірочн, верифікац, еднократ, потвържд,
    једнократн, растау коды, нэг удаагийн, пацвярдж, праверачн, аднаразов, ырастоо код,
    {код_|код для_|код за_|кода_}{входа|входу|вход|доступа|доступу|достъп|безопасности|безпеки|сигурност|
    авторизации|авторизації|активации|активації|активиране|восстановления|проверка|потврда|получения|отримання}`,
  'Hungarian, Baltic, Greek, Turkish, Caucasian': `
    ellenőrző, egyszer használatos, hitelesítő, megerősítő, biztonsági kód, belépési kód, aktiváló,
    kinnituskood, ühekord, turvakood, sisselogimiskood, kontrollkood, apstiprinājuma, vienreiz, drošības kod,
    patvirtinim, vienkart, saugos kod, prisijungimo kod, επαλήθευσ, μίας χρήσης, μιας χρήσης, επιβεβαίωσ,
    κωδικός ασφαλείας, κωδικός πρόσβασης, κωδικός σύνδεσ, κωδικό σύνδεσ, κωδικός ενεργοποίησ, κωδικός εισόδου,
    doğrulama, onay kod, tek kullanımlık, tek seferlik, giriş kod, güvenlik kod, aktivasyon kod, təsdiq kod,
    birdəfəlik, ერთჯერადი, დადასტურების, հաստատման, մեկանգամյա`,
  'Basque, Irish, Welsh': `
    egiaztapen, egiaztatze, berrespen, erabilera bakarr, fíoraithe, fíorú, deimhnithe, aonuaire, dilysu, untro`,
  'Arabic, Persian, Urdu, Hebrew': `
    التحقق, رمز التأكيد, رمز الدخول, رمز تسجيل, رمز الأمان, رمز المرور, رمز التفعيل, كود التفعيل, لمرة واحدة,
    رمز المصادقة, رمز الاستلام, یکبار مصرف, یک‌بار مصرف, یک بار مصرف, رمز پویا, رمز یکبار, کد تأیید, کد تایید,
    کد ورود, کد فعال, کد امنیتی, رمز ورود, تصدیقی, קוד אימות, קוד האימות, קוד חד, חד פעמי, חד-פעמי, קוד כניסה,
    קוד הכניסה, קוד אבטחה, קוד האבטחה, קוד הזדהות, קוד גישה, קוד התחברות`,
  'South and South-East Asian': `
    ओटीपी, सत्यापन, वन-टाइम, वन टाइम, सुरक्षा कोड, लॉगिन कोड, पुष्टिकरण, पडताळणी, যাচাইকরণ, ওটিপি, சரிபார்ப்பு,
    ధృవీకరణ, ચકાસણી, รหัสยืนยัน, รหัส otp, รหัสotp, ใช้ครั้งเดียว, ครั้งเดียว, รหัสความปลอดภัย, รหัสเข้าสู่ระบบ,
    รหัสการยืนยัน, xác minh, xác thực, xác nhận, mã otp, mã bảo mật, mã đăng nhập, mã truy cập, dùng một lần,
    mã kích hoạt, sekali pakai, sekali guna, verifikasi, pengesahan, uthibitisho, ផ្ទៀងផ្ទាត់, အတည်ပြု, ຢືນຢັນ,
    ማረጋገጫ, ಪರಿಶೀಲನಾ, സ്ഥിരീകരണ, ਪੁਸ਼ਟੀਕਰਨ, ਤਸਦੀਕ, प्रमाणीकरण,
    {kode_|kod_}{otp|keamanan|masuk|akses|konfirmasi|aktivasi|login}`,
  Chinese: `
    验证码, 驗證碼, 校验码, 校驗碼, 動態碼, 动态码, 動態密碼, 动态密码, 确认码, 確認碼, 认证码, 認證碼, 一次性,
    安全码, 安全碼, 登录码, 登入碼, 授权码, 授權碼, 激活码, 啟用碼, 取件码, 驗證代碼, 验证代码, 动态口令,
    配对码, 配對碼`,
  'Japanese and Korean': `
    {認証|確認|検証|確認用|本人確認|ログイン|セキュリティ|セキュリティ_}{コード|番号}, 認証キー, ワンタイム,
    暗証番号, パスコード, 受取コード, 일회용, {인증|인증_|확인|확인_|보안|보안_|로그인_|본인확인_}{번호|코드}`,
})

/** Words that may name a code or something else. */
export const WEAK_WORDS = words(`
  code$, codes$, código, codigo, codice, ^cod$, ^codul, ^codi$, koodi, kood$, ^kod$, ^kode$, ^koden, ^kodu,
  ^kodot, ^kodom, ^kodja, ^koda$, ^kodo$, ^kodą$, ^kodi, ^kodas, ^kods$, kód, ^код, κωδικ, mã_, รหัส, โค้ด, رمز,
  كود, کد, کوڈ, קוד, कोड, কোড, கோட், కోడ్, コード, 코드, կոդ, კოდი, msimbo, ^clau$, ^cód, ^chód, kodea$, លេខកូដ,
  ကုဒ်, ລະຫັດ, ኮድ, ಕೋಡ್, കോഡ്, કોડ, ਕੋਡ, කේතය, your token, seu token, o token, tu token, su token, el token,
  tuo token, il token, le token, votre token, dein token, ihr token, twój token, váš token, je token, токен,
  குறியீடு, password, passwort, kennwort, mot de passe, contraseña, senha, ^clave$, wachtwoord, lösenord,
  salasana, hasło, heslo, jelszó, parol, şifre, пароль, 密码, 密碼, 代码, 代碼, 數字碼, パスワード, 비밀번호
`)

/** Words for signing in. They do not name a code, but suggest that a number is one. */
export const SIGN_IN_WORDS = words(`
  anmelden, einloggen, connecter, iniciar sesión, inicia sesión, accedi, accedere, entrar, inloggen, te loggen,
  logga in, loggar in, log ind, logge ind, logg inn, logge inn, logg på, logge på, kirjaud, zalogować, zaloguj,
  logowani, přihlá, prihlás, bejelentkez, autentific, σύνδεσ, giriş yap, войти, входа, увійти, تسجيل الدخول,
  התחבר, ورود, लॉगिन, เข้าสู่ระบบ, đăng nhập, masuk, 登录, 登錄, 登入, ログイン, 로그인,
  {sign|signing|log|logging}{-in|_in|in|_up|-up|up|_on|-on}
`)

/** Other words that are frequent in mails with codes: for confirming, and for digits. */
export const CONFIRMING_WORDS = words(`
  confirm, authenticat, bestätig, anmeld, connexion, potwierdź, giriş, ^вход, ^вхід, 인증, authentif, digits,
  ziffern, chiffres, dígitos, cifre, cifras, cijfers, siffror, siffer, cyfr, číslic, számjegy, ψηφί, haneli,
  цифр, أرقام, ספרות, अंक, หลัก, chữ số, angka, 位数字, 位數字, 桁の, 桁数, 자리
`)
