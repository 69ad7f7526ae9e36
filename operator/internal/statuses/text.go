package statuses

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// MaxMessage is how long the messages of conditions are at most, in bytes.
	MaxMessage = 4096
	// MaxEventMessage is how long the message of an event may be, in bytes.
	MaxEventMessage = 1024
)

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
		s = Clip(s, MaxMessage/2)
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

// Clip cuts a text to a length in bytes.
func Clip(text string, length int) string {
	if len(text) <= length {
		return text
	}
	return strings.ToValidUTF8(text[:length-len("…")], "") + "…"
}

// DescribeConditions says what conditions tell, by field, without times.
func DescribeConditions(fields map[string]string, path string, conditions []metav1.Condition) {
	for _, c := range conditions {
		fields[fmt.Sprintf("%s.conditions[%s]", path, c.Type)] = strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message))
	}
}

// DescribeGeneration says which generation a status is about.
func DescribeGeneration(fields map[string]string, generation int64) {
	if generation != 0 {
		fields["status.observedGeneration"] = fmt.Sprint(generation)
	}
}
