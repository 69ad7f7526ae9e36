package statuses

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/internal/cut"
)

// MaxMessage is how long the messages of conditions are at most, in bytes.
const MaxMessage = 4096

// SetConditions puts conditions into a list, and keeps the times of those whose status is the same.
func SetConditions(list []metav1.Condition, conditions []metav1.Condition) []metav1.Condition {
	for _, c := range conditions {
		meta.SetStatusCondition(&list, c)
	}
	return list
}

// Find returns a condition, or an empty one.
func Find(conditions []metav1.Condition, conditionType string) metav1.Condition {
	if c := meta.FindStatusCondition(conditions, conditionType); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// Bounded joins sentences, as far as they fit into MaxMessage.
func Bounded(sentences []string) string {
	var b strings.Builder
	for i, s := range sentences {
		s = cut.Text(s, MaxMessage/2)
		rest := fmt.Sprintf("; and %d more", len(sentences)-i)
		if b.Len()+len(s)+len(rest) > MaxMessage {
			b.WriteString(rest)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(s)
	}
	return b.String()
}
