package templating

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// known are the functions that templates have. Each was looked at: it depends on nothing but its arguments.
const known = `abbrev abbrevboth add add1 add1f addf adler32sum all any append atoi b32dec b32enc b64dec b64enc base biggest buildCustomCert
camelcase cat ceil chunk clean coalesce compact concat contains
decryptAES deepCopy deepEqual default dict dig dir div divf duration
empty ext fail first float64 floor fromJson fromYaml get has hasKey hasPrefix hasSuffix hello html
indent index initial initials int int64 isAbs join js kebabcase keys kindIs kindOf last list lower
max maxf merge mergeOverwrite min minf mod mul mulf
mustAppend mustChunk mustCompact mustDeepCopy mustFirst mustFromJson mustHas mustInitial mustLast mustMerge mustMergeOverwrite mustPrepend mustPush
mustRegexFind mustRegexFindAll mustRegexMatch mustRegexReplaceAll mustRegexReplaceAllLiteral mustRegexSplit mustRest mustReverse mustSlice
mustToJson mustToPrettyJson mustToRawJson mustUniq mustWithout
nindent nospace omit osBase osClean osDir osExt osIsAbs pick pluck plural prepend print printf println push quote
regexFind regexFindAll regexMatch regexQuoteMeta regexReplaceAll regexReplaceAllLiteral regexSplit repeat replace required rest reverse round
semver semverCompare seq set sha1sum sha256sum sha512sum slice snakecase sortAlpha split splitList splitn squote sub subf substr swapcase
ternary title toDecimal toJson toPrettyJson toRawJson toString toStrings toYaml trim trimAll trimPrefix trimSuffix trimall trunc tuple
typeIs typeIsLike typeOf uniq unset until untilStep untitle upper urlJoin urlParse urlquery values without wrap wrapWith`

// TestNoFunctionReadsTheEnvironmentTheTimeOrRandomness fails when an update of sprig brings a function that nobody has looked at.
func TestNoFunctionReadsTheEnvironmentTheTimeOrRandomness(t *testing.T) {
	var unknown []string
	all, _ := functions()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(strings.Fields(known), name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		t.Errorf("look whether these depend on their arguments only: %v", unknown)
	}
	for _, name := range []string{"now", "date", "ago", "toDate", "env", "expandenv", "getHostByName", "randAlphaNum", "randInt", "uuidv4", "shuffle", "genCA", "htpasswd", "bcrypt"} {
		if _, err := render("{{ "+name+" }}", nil); err == nil || !strings.Contains(err.Error(), "function \""+name+"\" not defined") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
