package command

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/operatorkit/operatorkit/framework/plan"
)

// shadow shows how the resource sets that are only tried differ from those that are in charge.
func (r *reading) shadow(ctx context.Context, w io.Writer, subjects []subject, o planOptions) error {
	sets := 0
	for _, f := range r.frameworks {
		sets += len(f.Shadows())
	}
	if sets == 0 {
		return errors.New("--shadow: this operator tries no resource set: mark one with framework.ResourceSetConfig.Shadow")
	}
	comparisons, err := shadowsOf(ctx, subjects)
	if err != nil {
		return err
	}
	if o.output.format == outputJSON {
		err = plan.WriteShadowJSON(w, comparisons)
	} else {
		err = plan.WriteShadowText(w, comparisons, o.output.text(w))
	}
	if err != nil {
		return fmt.Errorf("write the comparison: %w", err)
	}
	return o.verdictOfShadows(comparisons)
}

// verdictOfShadows is the error that makes the exit code.
func (o *planOptions) verdictOfShadows(comparisons []*plan.Comparison) error {
	differ := false
	for _, c := range comparisons {
		switch c.Verdict() {
		case plan.NotComparable:
			return errPlanFailed
		case plan.Differs:
			differ = true
		}
		differ = differ || len(c.Opaque) > 0
	}
	if differ && o.detailed {
		return ErrChanges
	}
	return nil
}
