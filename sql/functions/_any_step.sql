-- Stands for a step of whatever number, where there is one of each number too.
CREATE OR REPLACE MACRO _any_step() AS (-9223372036854775808)::BIGINT;
