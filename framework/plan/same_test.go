package plan_test

import (
	"math"
	"testing"

	"github.com/operatorkit/operatorkit/framework/plan"
)

func TestNumbersAreTheSameInAllDigits(t *testing.T) {
	for _, row := range []struct {
		whole int64
		float float64
		same  bool
	}{
		{5, 5, true}, {-5, -5, true}, {5, 5.5, false}, {1 << 53, 1 << 53, true}, {1<<53 + 1, 1 << 53, false},
		{1234567890123456789, 1234567890123456789, false}, {math.MaxInt64, 1 << 63, false}, {math.MinInt64, -1 << 63, true},
	} {
		if plan.SameValue(row.whole, row.float) != row.same || plan.SameValue([]any{row.float}, []any{row.whole}) != row.same {
			t.Errorf("%d and %f: not %t", row.whole, row.float, row.same)
		}
	}
}
